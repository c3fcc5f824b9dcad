import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group, with Apache Kafka's Java client.
 *
 * {@code BOOTSTRAP GROUP TOPIC SEED} reads until its input ends. It accepts most records, releases and rejects some.
 * Each line says what became of a record: "got PARTITION OFFSET COUNT", and once the answer has come, "accepted
 * PARTITION OFFSET" or "rejected PARTITION OFFSET".
 */
public class ShareClient {
    private static final Duration POLL = Duration.ofMillis(200);

    public static void main(String[] args) throws Exception {
        Properties given = new Properties();
        given.put("bootstrap.servers", args[0]);
        given.put("group.id", args[1]);
        given.put("share.acknowledgement.mode", "explicit");
        given.put("max.poll.records", "50");
        String topic = args[2];
        int seed = Integer.parseInt(args[3]);
        Map<String, AcknowledgeType> said = new HashMap<>();
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(given, new StringDeserializer(), new StringDeserializer())) {
            consumer.setAcknowledgementCommitCallback((Map<TopicIdPartition, Set<Long>> offsets, Exception error) ->
                    offsets.forEach((partition, all) -> all.forEach(offset -> {
                        String name = partition.partition() + " " + offset;
                        AcknowledgeType kind = said.remove(name);
                        if (error == null && kind == AcknowledgeType.ACCEPT) {
                            System.out.println("accepted " + name);
                        } else if (error == null && kind == AcknowledgeType.REJECT) {
                            System.out.println("rejected " + name);
                        }
                    })));
            consumer.subscribe(List.of(topic));
            System.out.println("subscribed");
            while (System.in.available() == 0) {
                try {
                    for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                        String name = record.partition() + " " + record.offset();
                        Optional<Short> count = record.deliveryCount();
                        System.out.println("got " + name + " " + count.orElseThrow());
                        long dice = (record.offset() * 31 + seed) % 20;
                        AcknowledgeType kind = dice == 0 && count.orElseThrow() < 3 ? AcknowledgeType.RELEASE
                                : dice == 1 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT;
                        said.put(name, kind);
                        consumer.acknowledge(record, kind);
                    }
                    consumer.commitAsync();
                } catch (KafkaException error) {
                    System.out.println("error " + error.getClass().getSimpleName());
                }
                System.out.flush();
            }
            consumer.commitSync(Duration.ofSeconds(10));
        }
        System.out.println("done");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
