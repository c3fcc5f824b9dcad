import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Apache Kafka's Java client against a running cluster: {@code Client.java BOOTSTRAP}.
 *
 * Every codec is produced and consumed. For the failover it prints "kill N" and waits for a line on standard input:
 * by then broker N, the leader, is gone. Any doubt ends it with an exception.
 */
public class Client {
    private static final int RECORDS = 500;
    private static final Duration WAIT = Duration.ofSeconds(60);
    private final String bootstrap;
    private final Admin admin;

    private Client(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] args) throws Exception {
        Client client = new Client(args[0]);
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            client.codec(codec);
        }
        client.transfer("group", () -> { }, true);
        client.failover();
        client.deletion();
        client.admin.close(Duration.ofSeconds(5));
        System.out.println("done");
        System.exit(0);
    }

    private void codec(String codec) throws Exception {
        String topic = "java-" + codec;
        create(topic);
        List<String> sent = values(topic);
        try (KafkaProducer<String, String> producer = producer(codec)) {
            send(producer, topic, sent);
        }
        check(consume(topic, false), sent, topic);
    }

    private void failover() throws Exception {
        transfer("failover", () -> {
            int leader = describe("java-failover").partitions().get(0).leader().id();
            System.out.println("kill " + leader);
            System.out.flush();
            System.in.read();
        }, false);
        require(describe("java-failover").partitions().get(0).leader() != null, "no leader after the kill");
    }

    private interface Interruption {
        void happens() throws Exception;
    }

    /** Half of the records, what happens, the other half; all by one idempotent producer. */
    private void transfer(String name, Interruption between, boolean inGroup) throws Exception {
        String topic = "java-" + name;
        create(topic);
        List<String> sent = values(topic);
        try (KafkaProducer<String, String> producer = producer("lz4")) {
            send(producer, topic, sent.subList(0, RECORDS / 2));
            between.happens();
            send(producer, topic, sent.subList(RECORDS / 2, RECORDS));
        }
        check(consume(topic, inGroup), sent, topic);
    }

    private void deletion() throws Exception {
        admin.deleteTopics(List.of("java-none")).all().get();
        long end = System.nanoTime() + WAIT.toNanos();
        while (admin.listTopics().names().get().contains("java-none")) {
            require(System.nanoTime() < end, "a deleted topic is still listed");
            Thread.sleep(100);
        }
    }

    private void create(String topic) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, 1, (short) 3).configs(Map.of("retention.ms", "600000")))).all().get();
        // the brokers hear of it a moment after the controller
        long end = System.nanoTime() + WAIT.toNanos();
        while (!admin.listTopics().names().get().contains(topic)) {
            require(System.nanoTime() < end, topic + " is not listed");
            Thread.sleep(50);
        }
        TopicPartitionInfo partition = describe(topic).partitions().get(0);
        require(partition.replicas().size() == 3, topic + " has not three replicas: " + partition);
        require(partition.elr() != null, topic + " is described without ELR: " + partition);
    }

    private TopicDescription describe(String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    }

    private static List<String> values(String topic) {
        List<String> values = new ArrayList<>();
        for (int number = 0; number < RECORDS; number++) {
            values.add(topic + "-" + number + "-" + "abcdefgh".repeat(number % 30 * 25));
        }
        return values;
    }

    private KafkaProducer<String, String> producer(String codec) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "compression.type", codec, "acks", "all",
                "enable.idempotence", "true", "linger.ms", "2", "batch.size", "4096");
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    private static void send(KafkaProducer<String, String> producer, String topic, List<String> values) throws Exception {
        List<Future<RecordMetadata>> acknowledged = new ArrayList<>();
        for (String value : values) {
            ProducerRecord<String, String> record = new ProducerRecord<>(topic, "key", value);
            record.headers().add("h", value.substring(0, 4).getBytes(StandardCharsets.UTF_8));
            acknowledged.add(producer.send(record));
        }
        for (Future<RecordMetadata> one : acknowledged) {
            require(one.get().offset() >= 0, "no offset");
        }
    }

    private List<String> consume(String topic, boolean inGroup) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "group.id", "java-group",
                "auto.offset.reset", "earliest", "enable.auto.commit", "false");
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            if (inGroup) {
                consumer.subscribe(List.of(topic));
            } else {
                consumer.assign(List.of(partition));
                consumer.seekToBeginning(List.of(partition));
            }
            long end = System.nanoTime() + WAIT.toNanos();
            while (values.size() < RECORDS) {
                require(System.nanoTime() < end, topic + ": " + values.size() + " of " + RECORDS + " records arrived");
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                    values.add(record.value());
                    require(new String(record.headers().lastHeader("h").value(), StandardCharsets.UTF_8)
                            .equals(record.value().substring(0, 4)), "a header is another one");
                }
            }
            if (inGroup) {
                consumer.commitSync();
                require(consumer.committed(Set.of(partition)).get(partition).offset() == RECORDS, "committed offset");
            }
            require(consumer.endOffsets(List.of(partition)).get(partition) == RECORDS, topic + " has another end");
        }
        return values;
    }

    private static void check(List<String> received, List<String> sent, String topic) {
        require(received.equals(sent), topic + ": received is not what was sent, in order");
    }

    private static void require(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }
}
