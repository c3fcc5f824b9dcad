import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Transactions of Apache Kafka's Java client against a running cluster.
 *
 * {@code rules BOOTSTRAP NAME} plays each rule once and prints the epochs of eight transactions of one producer.
 * {@code copy BOOTSTRAP RECORDS} copies a topic, a few records in each transaction, and prints "copied N" after each;
 * meanwhile brokers are killed. {@code move BOOTSTRAP RECORDS FROM TO} copies topics that exist, of which others write
 * the first one. {@code read BOOTSTRAP TOPIC} prints the committed values of a topic.
 * Any doubt ends the program with an exception.
 */
public class TransactionalClient {
    private static final int PARTITIONS = 3;
    private static final int AT_ONCE = 40;
    private static final Duration POLL = Duration.ofMillis(200);
    private static final long WAIT_NANOS = 60_000_000_000L;
    private final String bootstrap;
    private final Admin admin;

    private TransactionalClient(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] args) throws Exception {
        TransactionalClient client = new TransactionalClient(args[1]);
        switch (args[0]) {
            case "rules" -> client.rules(args[2]);
            case "copy" -> client.copy(Integer.parseInt(args[2]));
            case "move" -> client.move(Integer.parseInt(args[2]), args[3], args[4]);
            case "read" -> client.all(args[2], "read_committed").stream().sorted().forEach(System.out::println);
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.out.println("done");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private void rules(String name) throws Exception {
        create(name, 1);
        try (KafkaProducer<String, String> producer = producer(name)) {
            producer.initTransactions();
            List<String> committed = new ArrayList<>();
            List<String> written = new ArrayList<>();
            List<Integer> epochs = new ArrayList<>();
            for (int round = 0; round < 8; round++) {
                producer.beginTransaction();
                for (int n = 0; n < 5; n++) {
                    producer.send(new ProducerRecord<>(name, round + "-" + n));
                    written.add(round + "-" + n);
                }
                producer.flush();
                epochs.add(described(name).producerEpoch());
                if (round % 3 == 1) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                    committed.addAll(written.subList(written.size() - 5, written.size()));
                }
            }
            require(all(name, "read_committed").equals(committed), "read_committed does not read what was committed");
            require(all(name, "read_uncommitted").equals(written), "read_uncommitted does not read what was written");
            System.out.println("epochs " + epochs.stream().map(String::valueOf).collect(Collectors.joining(" ")));
            nothingSent(producer);
            secondInstanceFences(name, producer, committed);
        }
        offsetsOfAGroup(name);
    }

    /** A transaction without records is committed and aborted without a request, and the next one works. */
    private void nothingSent(KafkaProducer<String, String> producer) {
        producer.beginTransaction();
        producer.commitTransaction();
        producer.beginTransaction();
        producer.abortTransaction();
    }

    private void secondInstanceFences(String name, KafkaProducer<String, String> first, List<String> committed)
            throws Exception {
        first.beginTransaction();
        first.send(new ProducerRecord<>(name, "of the first")).get();
        try (KafkaProducer<String, String> second = producer(name)) {
            second.initTransactions();
            second.beginTransaction();
            second.send(new ProducerRecord<>(name, "of the second")).get();
            require(isFenced(() -> first.send(new ProducerRecord<>(name, "too late")).get()), "send of the first");
            require(isFenced(first::commitTransaction), "commit of the first");
            second.commitTransaction();
        }
        committed.add("of the second");
        require(all(name, "read_committed").equals(committed), "what the first producer wrote was committed");
    }

    private interface Doing {
        void run() throws Exception;
    }

    private static boolean isFenced(Doing doing) throws Exception {
        try {
            doing.run();
            return false;
        } catch (ExecutionException | KafkaException error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            if (cause instanceof ProducerFencedException || cause instanceof InvalidProducerEpochException) {
                return true;
            }
            // KafkaProducer wraps what an earlier call met
            Throwable wrapped = cause.getCause();
            if (wrapped instanceof ProducerFencedException || wrapped instanceof InvalidProducerEpochException) {
                return true;
            }
            throw error;
        }
    }

    private void offsetsOfAGroup(String name) throws Exception {
        TopicPartition place = new TopicPartition(name, 0);
        try (KafkaProducer<String, String> producer = producer(name);
                KafkaConsumer<String, String> consumer = consumer("read_committed", name)) {
            producer.initTransactions();
            consumer.subscribe(List.of(name));
            long end = System.nanoTime() + WAIT_NANOS;
            while (consumer.assignment().isEmpty()) {
                consumer.poll(POLL);
                require(System.nanoTime() < end, "the group gives no partition");
            }
            for (long offset : new long[] {7, 9}) {
                producer.beginTransaction();
                producer.sendOffsetsToTransaction(Map.of(place, new OffsetAndMetadata(offset)), consumer.groupMetadata());
                if (offset == 7) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
                Map<TopicPartition, OffsetAndMetadata> found = Map.of();
                // commitTransaction returns before the markers are written. Until then the broker answers
                // UNSTABLE_OFFSET_COMMIT, and the admin client leaves such a partition out (a consumer asks again)
                while (!found.containsKey(place)) {
                    require(System.nanoTime() < end, "no stable offset after a transaction with " + offset);
                    found = admin
                            .listConsumerGroupOffsets(
                                    Map.of(name, new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(place))),
                                    new ListConsumerGroupOffsetsOptions().requireStable(true))
                            .partitionsToOffsetAndMetadata().get();
                }
                OffsetAndMetadata committed = found.get(place);
                require(committed != null && committed.offset() == 7, committed + " after a transaction with " + offset);
            }
        }
    }

    private void copy(int records) throws Exception {
        create("from", PARTITIONS);
        create("to", PARTITIONS);
        try (KafkaProducer<String, String> producer = producer(null)) {
            for (int n = 0; n < records; n++) {
                producer.send(new ProducerRecord<>("from", n % PARTITIONS, null, "record-" + n));
            }
        }
        move(records, "from", "to");
    }

    private void move(int records, String from, String to) throws Exception {
        int copied = 0;
        try (KafkaProducer<String, String> producer = producer("copy");
                KafkaConsumer<String, String> consumer = consumer("read_committed", "copy")) {
            producer.initTransactions();
            consumer.subscribe(List.of(from));
            long end = System.nanoTime() + 5 * WAIT_NANOS;
            while (copied < records) {
                require(System.nanoTime() < end, "only " + copied + " records were copied");
                ConsumerRecords<String, String> found = consumer.poll(POLL);
                if (found.isEmpty()) {
                    continue;
                }
                if (copyOnce(producer, consumer, found, to)) {
                    copied += found.count();
                    System.out.println("copied " + copied);
                    System.out.flush();
                } else {
                    for (TopicPartition partition : found.partitions()) {
                        consumer.seek(partition, found.records(partition).get(0).offset());
                    }
                }
            }
        }
    }

    private static boolean copyOnce(
            KafkaProducer<String, String> producer,
            KafkaConsumer<String, String> consumer,
            ConsumerRecords<String, String> found,
            String to) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        producer.beginTransaction();
        try {
            for (ConsumerRecord<String, String> record : found) {
                producer.send(new ProducerRecord<>(to, record.partition(), null, record.value()));
                offsets.put(
                        new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.commitTransaction();
            return true;
        } catch (ProducerFencedException fenced) {
            throw fenced;
        } catch (KafkaException abortable) {
            System.out.println("aborted: " + abortable);
            producer.abortTransaction();
            return false;
        }
    }

    private TransactionDescription described(String id) throws Exception {
        TransactionDescription found = admin.describeTransactions(List.of(id)).description(id).get();
        require(found.state() == TransactionState.ONGOING, id + " is " + found.state());
        return found;
    }

    private List<String> all(String topic, String isolation) throws Exception {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(isolation, null)) {
            List<TopicPartition> places = IntStream.range(0, partitionsOf(topic))
                    .mapToObj(index -> new TopicPartition(topic, index)).toList();
            consumer.assign(places);
            consumer.seekToBeginning(places);
            // ends at the last stable offset for read_committed
            Map<TopicPartition, Long> ends = consumer.endOffsets(places);
            long end = System.nanoTime() + WAIT_NANOS;
            while (places.stream().anyMatch(place -> consumer.position(place) < ends.get(place))) {
                require(System.nanoTime() < end, topic + " was not read to " + ends);
                consumer.poll(POLL).forEach(record -> values.add(record.value()));
            }
        }
        return values;
    }

    private int partitionsOf(String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    }

    private void create(String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 3))).all().get();
    }

    private KafkaProducer<String, String> producer(String transactionalId) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", "0"));
        if (transactionalId != null) {
            config.put("transactional.id", transactionalId);
        }
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    private KafkaConsumer<String, String> consumer(String isolation, String group) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "isolation.level", isolation,
                "auto.offset.reset", "earliest", "enable.auto.commit", "false", "max.poll.records", AT_ONCE));
        if (group != null) {
            config.put("group.id", group);
        }
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private static void require(boolean holds, String problem) {
        if (!holds) {
            throw new AssertionError(problem);
        }
    }
}
