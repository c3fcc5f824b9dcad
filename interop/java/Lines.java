import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Lines into and out of a topic: {@code Lines.java produce|consume BOOTSTRAP TOPIC GROUP [FILE]}, with the properties in
 * the file besides. Each line is sent as it comes. Consuming never ends.
 */
public class Lines {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("produce")) {
            produce(args[1], args[2], properties(args));
        } else {
            consume(args[1], args[2], args[3], properties(args));
        }
    }

    private static Map<String, Object> properties(String[] args) throws Exception {
        Map<String, Object> found = new HashMap<>();
        if (args.length > 4) {
            Properties file = new Properties();
            try (Reader in = Files.newBufferedReader(Path.of(args[4]))) {
                file.load(in);
            }
            file.forEach((name, value) -> found.put((String) name, value));
        }
        return found;
    }

    private static void produce(String bootstrap, String topic, Map<String, Object> config) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        config.putAll(Map.of("bootstrap.servers", bootstrap, "enable.idempotence", "true", "linger.ms", "0"));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                sent.add(producer.send(new ProducerRecord<>(topic, line, line)));
            }
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
        }
    }

    private static void consume(String bootstrap, String topic, String group, Map<String, Object> config) {
        config.putAll(Map.of("bootstrap.servers", bootstrap, "group.id", group,
                "auto.offset.reset", "earliest", "enable.auto.commit", "false"));
        if (!"consumer".equals(config.get("group.protocol"))) {
            config.putAll(Map.of("session.timeout.ms", "6000", "heartbeat.interval.ms", "1000"));
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                for (ConsumerRecord<String, String> record : records) {
                    System.out.println(record.value());
                }
                System.out.flush();
                if (!records.isEmpty()) {
                    consumer.commitAsync();
                }
            }
        }
    }
}
