import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Two producers whose transactions interleave in one partition: one commits, one aborts; then a record without a
 * transaction, and a transaction that stays open.
 */
public class Transactions {
    private static final String TOPIC = "transactions";

    public static void main(String[] args) throws Exception {
        KafkaProducer<String, String> good = producer(args[0], "good");
        KafkaProducer<String, String> bad = producer(args[0], "bad");
        good.initTransactions();
        bad.initTransactions();
        for (int round = 0; round < 10; round++) {
            good.beginTransaction();
            bad.beginTransaction();
            for (int n = 0; n < 20; n++) {
                good.send(record("committed-" + (round * 20 + n))).get();
                bad.send(record("aborted-" + (round * 20 + n))).get();
            }
            if (round % 2 == 0) {
                good.commitTransaction();
                bad.abortTransaction();
            } else {
                bad.abortTransaction();
                good.commitTransaction();
            }
        }
        KafkaProducer<String, String> plain = producer(args[0], null);
        plain.send(record("plain")).get();
        plain.close();
        good.beginTransaction();
        good.send(record("open")).get();
        good.flush();
        Runtime.getRuntime().halt(0);
    }

    private static ProducerRecord<String, String> record(String value) {
        return new ProducerRecord<>(TOPIC, 0, null, value);
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String transactionalId) {
        Properties properties = new Properties();
        properties.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        if (transactionalId != null) {
            properties.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, transactionalId);
        }
        return new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
    }
}
