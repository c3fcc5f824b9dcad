import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * A job of Apache Flink in this process: {@code FlinkJob BOOTSTRAP TOPIC RECORDS GUARANTEE}.
 *
 * Two tasks write the numbers from 0 on, and fail twice: the job is restored from its last checkpoint, and writes again
 * what came after it. It prints "failed" at each failure, and "done" at its end.
 */
public class FlinkJob {
    private static final int FAILURES = 2;
    private static final int PER_SECOND = 500;

    private FlinkJob() {}

    /** Passes records on, and fails in the midst of a transaction. */
    public static class Failing extends RichMapFunction<String, String> {
        private final long failsAfter;
        private long seen;

        Failing(long failsAfter) {
            this.failsAfter = failsAfter;
        }

        @Override
        public String map(String value) {
            seen += 1;
            if (seen == failsAfter && getRuntimeContext().getTaskInfo().getAttemptNumber() < FAILURES) {
                System.out.println("failed");
                throw new IllegalStateException("as planned");
            }
            return value;
        }
    }

    public static void main(String[] args) throws Exception {
        Configuration config = new Configuration();
        config.setString("restart-strategy.type", "fixed-delay");
        config.setString("restart-strategy.fixed-delay.attempts", "20");
        config.setString("restart-strategy.fixed-delay.delay", "200 ms");
        config.setString("execution.checkpointing.interval", "300 ms");
        Properties producer = new Properties();
        producer.setProperty("transaction.timeout.ms", "60000");
        long records = Long.parseLong(args[2]);
        StreamExecutionEnvironment job = StreamExecutionEnvironment.createLocalEnvironment(2, config);
        DataGeneratorSource<String> numbers = new DataGeneratorSource<>(
                number -> Long.toString(number), records, RateLimiterStrategy.perSecond(PER_SECOND), Types.STRING);
        KafkaSink<String> sink = KafkaSink.<String>builder()
                .setBootstrapServers(args[0])
                .setRecordSerializer(KafkaRecordSerializationSchema.builder()
                        .setTopic(args[1])
                        .setValueSerializationSchema(new SimpleStringSchema())
                        .build())
                .setDeliveryGuarantee(DeliveryGuarantee.valueOf(args[3]))
                .setTransactionalIdPrefix(args[1])
                .setKafkaProducerConfig(producer)
                .build();
        job.fromSource(numbers, WatermarkStrategy.noWatermarks(), "numbers")
                .map(new Failing(records / 6))
                .returns(Types.STRING)
                .sinkTo(sink);
        job.execute("numbers");
        System.out.println("done");
        System.exit(0);
    }
}
