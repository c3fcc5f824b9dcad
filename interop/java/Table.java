import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Keys and values into and out of partition 0 of a topic: {@code Table.java write|read BOOTSTRAP TOPIC}. Lines are
 * {@code key TAB value}, without a TAB for a tombstone; what is read begins with its offset and a TAB.
 */
public class Table {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("write")) {
            write(args[1], args[2]);
        } else {
            read(args[1], new TopicPartition(args[2], 0));
        }
    }

    private static void write(String bootstrap, String topic) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "compression.type", "lz4", "batch.size", "700");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String[] parts = line.split("\t");
                sent.add(producer.send(new ProducerRecord<>(topic, 0, parts[0], parts.length == 1 ? null : parts[1])));
            }
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
        }
    }

    private static void read(String bootstrap, TopicPartition at) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "none");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(at));
            consumer.seek(at, 0);
            long end = consumer.endOffsets(List.of(at)).get(at);
            while (consumer.position(at) < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                    String value = record.value() == null ? "" : "\t" + record.value();
                    System.out.println(record.offset() + "\t" + record.key() + value);
                }
            }
        }
    }
}
