import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What Apache Kafka's Java client does in groups of the consumer protocol (KIP-848) and in share groups (KIP-932):
 * {@code LaterGroups BOOTSTRAP}. It prints what must be the same on every broker, and ends with "done".
 */
public class LaterGroups {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long LIMIT_MS = 60_000;
    private static String servers;
    private static Admin admin;
    private static KafkaProducer<String, String> producer;

    public static void main(String[] args) throws Exception {
        servers = args[0];
        try (Admin made = Admin.create(Map.of("bootstrap.servers", servers));
                KafkaProducer<String, String> sending = new KafkaProducer<>(
                        Map.of("bootstrap.servers", servers), new StringSerializer(), new StringSerializer())) {
            admin = made;
            producer = sending;
            membersShare();
            staticMember();
            pattern();
            commits();
            implicit();
            explicit();
            lockEnds();
        }
        System.out.println("done");
    }

    // -- the consumer protocol

    private static final class Member implements ConsumerRebalanceListener, AutoCloseable {
        final KafkaConsumer<String, String> consumer;
        final List<String> values = new ArrayList<>();
        int assigned;
        int revoked;

        Member(String group, Map<String, String> more) {
            Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers, "group.id", group,
                    "group.protocol", "consumer", "auto.offset.reset", "earliest", "enable.auto.commit", "false"));
            config.putAll(more);
            consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            assigned += partitions.size();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            revoked += partitions.size();
        }

        void poll() {
            consumer.poll(POLL).forEach(record -> values.add(record.value()));
        }

        /** Empty while the listener does not know of all. */
        Set<String> owned() {
            Set<String> found = new TreeSet<>();
            consumer.assignment().forEach(partition -> found.add(partition.toString()));
            return found.size() == assigned - revoked ? found : Set.of();
        }

        @Override
        public void close() {
            consumer.close();
        }
    }

    private static void membersShare() throws Exception {
        create("shared", 4);
        send("shared", 4, "a", "b", "c", "d");
        Member one = new Member("sharing", Map.of());
        one.consumer.subscribe(List.of("shared"), one);
        until("one has all", one::poll, () -> one.owned().size() == 4 && one.values.size() == 4);
        Member two = new Member("sharing", Map.of("group.remote.assignor", "range"));
        two.consumer.subscribe(List.of("shared"), two);
        until("two have half each", both(one, two), () -> one.owned().size() == 2 && two.owned().size() == 2);
        Set<String> all = new TreeSet<>(one.owned());
        all.addAll(two.owned());
        say("members share: " + all + " assigned " + one.assigned + " " + two.assigned + " revoked " + one.revoked + " "
                + two.revoked);
        two.close();
        until("one has all again", one::poll, () -> one.owned().size() == 4);
        say("a member left: " + one.owned() + " " + one.consumer.groupMetadata().groupId());
        one.close();
    }

    private static void staticMember() throws Exception {
        create("fixed", 4);
        Member one = new Member("fixed", Map.of("group.instance.id", "one"));
        Member two = new Member("fixed", Map.of("group.instance.id", "two"));
        one.consumer.subscribe(List.of("fixed"), one);
        two.consumer.subscribe(List.of("fixed"), two);
        until("half each", both(one, two), () -> one.owned().size() == 2 && two.owned().size() == 2);
        Set<String> before = two.owned();
        int seen = one.assigned + one.revoked;
        two.close();
        Member back = new Member("fixed", Map.of("group.instance.id", "two"));
        back.consumer.subscribe(List.of("fixed"), back);
        until("the same partitions", both(one, back), () -> back.owned().equals(before));
        say("a static member is back: others rebalanced " + (one.assigned + one.revoked != seen));
        Member third = new Member("fixed", Map.of("group.instance.id", "two"));
        third.consumer.subscribe(List.of("fixed"), third);
        String refused = null;
        for (long end = System.currentTimeMillis() + LIMIT_MS; refused == null; ) {
            try {
                third.poll();
                one.poll();
                back.poll();
            } catch (Exception error) {
                refused = error.getClass().getSimpleName();
            }
            check(System.currentTimeMillis() < end, "a second member of an instance is refused");
        }
        say("a second member of the instance: " + refused);
        third.close();
        one.close();
        back.close();
    }

    private static void pattern() throws Exception {
        create("pattern-1", 1);
        create("patter", 1);
        Member member = new Member("pattern", Map.of());
        member.consumer.subscribe(new SubscriptionPattern("pattern-[0-9]"), member);
        until("one topic", member::poll, () -> member.owned().size() == 1);
        create("pattern-2", 1);
        create("pattern-x", 1);
        until("two topics", member::poll, () -> member.owned().size() == 2);
        say("pattern: " + member.owned());
        member.consumer.unsubscribe();
        member.consumer.subscribe(List.of("patter"), member);
        until("a name", member::poll, () -> member.owned().equals(Set.of("patter-0")));
        member.close();
        Member wrong = new Member("pattern", Map.of());
        wrong.consumer.subscribe(new SubscriptionPattern("(unclosed"), wrong);
        String refused = null;
        for (long end = System.currentTimeMillis() + LIMIT_MS; refused == null; ) {
            try {
                wrong.poll();
            } catch (Exception error) {
                refused = error.getClass().getSimpleName();
            }
            check(System.currentTimeMillis() < end, "a pattern that cannot be read is refused");
        }
        say("a pattern that cannot be read: " + refused);
        wrong.close();
    }

    private static void commits() throws Exception {
        create("committed", 1);
        send("committed", 1, "a", "b", "c", "d", "e");
        TopicPartition partition = new TopicPartition("committed", 0);
        try (Member member = new Member("committing", Map.of("max.poll.records", "1"))) {
            member.consumer.subscribe(List.of("committed"), member);
            until("two records", member::poll, () -> member.values.size() == 2);
            member.consumer.commitSync(Map.of(partition, new OffsetAndMetadata(2, Optional.empty(), "note")));
            member.consumer.seek(partition, 4);
            until("the last record", member::poll, () -> member.values.contains("e"));
            OffsetAndMetadata stored = member.consumer.committed(Set.of(partition)).get(partition);
            say("committed: " + stored.offset() + " " + stored.metadata() + " read " + member.values);
        }
        try (Member next = new Member("committing", Map.of("enable.auto.commit", "true"))) {
            next.consumer.subscribe(List.of("committed"), next);
            until("the rest", next::poll, () -> next.values.size() == 3);
            say("from the commit: " + next.values);
        }
        try (Member last = new Member("committing", Map.of())) {
            say("committed at the close: " + last.consumer.committed(Set.of(partition)).get(partition).offset());
        }
    }

    private static Runnable both(Member one, Member two) {
        return () -> {
            one.poll();
            two.poll();
        };
    }

    // -- share groups

    private static KafkaShareConsumer<String, String> sharing(String group, String mode) {
        KafkaShareConsumer<String, String> made = new KafkaShareConsumer<>(
                Map.of("bootstrap.servers", servers, "group.id", group, "share.acknowledgement.mode", mode),
                new StringDeserializer(), new StringDeserializer());
        made.subscribe(List.of(group));
        return made;
    }

    /** What came until each of these values did, so many times: value to the delivery counts. */
    private static Map<String, List<Short>> received(
            KafkaShareConsumer<String, String> consumer, Map<String, AcknowledgeType> answers, int deliveries) {
        Map<String, List<Short>> found = new TreeMap<>();
        int[] count = {0};
        until(deliveries + " deliveries", () -> {
            for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                found.computeIfAbsent(record.value(), value -> new ArrayList<>()).add(record.deliveryCount().get());
                count[0]++;
                if (answers != null) {
                    consumer.acknowledge(record, answers.getOrDefault(record.value(), AcknowledgeType.ACCEPT));
                }
            }
            if (answers != null) {
                consumer.commitSync();
            }
        }, () -> count[0] >= deliveries);
        return found;
    }

    private static void nothingMore(KafkaShareConsumer<String, String> consumer) {
        for (long end = System.currentTimeMillis() + 1500; System.currentTimeMillis() < end; ) {
            for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                throw new IllegalStateException(record.value() + " came once more");
            }
        }
    }

    private static void shareTopic(String name, Map<String, String> config, String... values) throws Exception {
        create(name, 1);
        List<AlterConfigOp> changes = new ArrayList<>();
        changes.add(new AlterConfigOp(
                new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET));
        config.forEach((key, value) -> changes.add(
                new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, name), changes)).all().get();
        send(name, 1, values);
    }

    private static void implicit() throws Exception {
        shareTopic("implicit", Map.of(), "a", "b", "c");
        try (KafkaShareConsumer<String, String> one = sharing("implicit", "implicit")) {
            say("implicit: " + received(one, null, 3));
            one.commitSync();
            nothingMore(one);
        }
        send("implicit", 1, "d");
        try (KafkaShareConsumer<String, String> two = sharing("implicit", "implicit")) {
            say("implicit, the next member: " + received(two, null, 1));
        }
    }

    private static void explicit() throws Exception {
        shareTopic("explicit", Map.of(), "accepted", "released", "rejected");
        try (KafkaShareConsumer<String, String> one = sharing("explicit", "explicit")) {
            // the default limit of deliveries is five
            say("explicit: " + received(one, Map.of(
                    "released", AcknowledgeType.RELEASE, "rejected", AcknowledgeType.REJECT), 7));
            nothingMore(one);
            send("explicit", 1, "late");
            boolean refused = false;
            try {
                while (one.poll(POLL).isEmpty()) { }
                one.poll(POLL);
            } catch (IllegalStateException error) {
                refused = true;
            }
            say("a poll before the acknowledgement is refused: " + refused);
        }
        try (KafkaShareConsumer<String, String> two = sharing("explicit", "explicit")) {
            // the member that had it has left
            say("what a member left: " + received(two, Map.of(), 1).keySet());
        }
    }

    private static void lockEnds() throws Exception {
        shareTopic("lock", Map.of("share.record.lock.duration.ms", "2000"), "slow");
        try (KafkaShareConsumer<String, String> one = sharing("lock", "explicit");
                KafkaShareConsumer<String, String> two = sharing("lock", "explicit")) {
            int[] count = {0};
            until("the first delivery", () -> count[0] += one.poll(POLL).count(), () -> count[0] == 1);
            say("after the lock: " + received(two, Map.of(), 1));
        }
    }

    // -- what all need

    private static void create(String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
    }

    private static void send(String topic, int partitions, String... values) throws Exception {
        for (int number = 0; number < values.length; number++) {
            producer.send(new ProducerRecord<>(topic, number % partitions, null, values[number])).get();
        }
    }

    private static void until(String what, Runnable step, BooleanSupplier done) {
        for (long end = System.currentTimeMillis() + LIMIT_MS; !done.getAsBoolean(); ) {
            check(System.currentTimeMillis() < end, what);
            step.run();
        }
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException("not in time: " + what);
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
