import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.stream.Collectors;
import kafka.server.share.SharePartition;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ShareFetchResponseData.AcquiredRecords;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * Asks Apache Kafka's SharePartition: one line in (words between blanks), one line out.
 *
 * <pre>
 *     open DELIVERIES START FIRST-LAST:STATE:COUNT ...       a new share partition, from this stored state
 *     fetch MEMBER MODE BATCH_SIZE RECORDS FIRST-LAST ...    the batches that the log has from its next fetch offset on
 *     acknowledge MEMBER FIRST-LAST:TYPE,TYPE ...
 *     release MEMBER                                         its session has ended
 * </pre>
 *
 * The answer is what was acquired (FIRST-LAST:COUNT) or the name of an error, then what was written to the share
 * coordinator, then the start offset and the next fetch offset. Every write succeeds, and no lock ends.
 */
public class SharePartitions {
    private static final Uuid TOPIC = new Uuid(1, 1);

    private SharePartition share;
    private long startOffset;
    private List<PersisterStateBatch> stored = List.of();
    private String written = "";

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        SharePartitions partitions = new SharePartitions();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(partitions.answer(line.split(" ")));
        }
        out.flush();
        System.exit(0);
    }

    private String answer(String[] words) throws Exception {
        List<String> rest = Arrays.asList(words);
        written = "-";
        String result;
        switch (words[0]) {
            case "open":
                open(Integer.parseInt(words[1]), Long.parseLong(words[2]), rest.subList(3, rest.size()));
                result = "ok";
                break;
            case "fetch":
                result = fetch(words, rest.subList(5, rest.size()));
                break;
            case "acknowledge":
                result = acknowledge(words[1], rest.subList(2, rest.size()));
                break;
            default:
                result = outcome(share.releaseAcquiredRecords(words[1]));
        }
        return result + " " + written + " " + call("startOffset") + " " + share.nextFetchOffset();
    }

    private Object call(String name) throws Exception {
        Method method = SharePartition.class.getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(share);
    }

    private void open(int deliveries, long start, List<String> batches) throws Exception {
        startOffset = start;
        stored = batches.stream().map(SharePartitions::stateBatch).collect(Collectors.toList());
        Persister persister = (Persister) Proxy.newProxyInstance(Persister.class.getClassLoader(),
            new Class<?>[] {Persister.class}, (proxy, method, args) ->
                method.getName().equals("readState") ? read() : write((WriteShareGroupStateParameters) args[0]));
        Constructor<?> made = Arrays.stream(SharePartition.class.getDeclaredConstructors())
            .filter(each -> each.getParameterCount() == 12).findFirst().orElseThrow();
        made.setAccessible(true);
        TopicIdPartition partition = new TopicIdPartition(TOPIC, new TopicPartition("t", 0));
        share = (SharePartition) made.newInstance("g", partition, 0, 2000, deliveries, 30_000, new NoTimer(), Time.SYSTEM,
            persister, null, new GroupConfigManager(Map.of()), null);
        share.maybeInitialize().get();
    }

    private CompletableFuture<ReadShareGroupStateResult> read() {
        return CompletableFuture.completedFuture(new ReadShareGroupStateResult.Builder().setTopicsData(List.of(
            new TopicData<>(TOPIC, List.of(
                PartitionFactory.newPartitionAllData(0, 0, startOffset, (short) 0, "", stored))))).build());
    }

    private CompletableFuture<WriteShareGroupStateResult> write(WriteShareGroupStateParameters given) {
        PartitionStateBatchData data = given.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
        List<String> merged = new ArrayList<>();
        long first = -1;
        PersisterStateBatch last = null;
        for (PersisterStateBatch each : data.stateBatches()) {
            boolean joins = last != null && last.lastOffset() + 1 == each.firstOffset()
                && last.deliveryState() == each.deliveryState() && last.deliveryCount() == each.deliveryCount();
            if (!joins) {
                if (last != null) {
                    merged.add(text(first, last));
                }
                first = each.firstOffset();
            }
            last = each;
        }
        merged.add(text(first, last));
        written = data.startOffset() + ";" + data.deliveryCompleteCount() + ";" + String.join(",", merged);
        return CompletableFuture.completedFuture(new WriteShareGroupStateResult.Builder().setTopicsData(List.of(
            new TopicData<>(TOPIC, List.of(PartitionFactory.newPartitionErrorData(0, (short) 0, null))))).build());
    }

    private static String text(long first, PersisterStateBatch last) {
        return first + "-" + last.lastOffset() + ":" + last.deliveryState() + ":" + last.deliveryCount();
    }

    private String fetch(String[] words, List<String> batches) {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        for (String each : batches) {
            long[] range = range(each);
            MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, Compression.NONE, TimestampType.CREATE_TIME, range[0]);
            for (long offset = range[0]; offset <= range[1]; offset++) {
                builder.appendWithOffset(offset, new SimpleRecord(0, "v".getBytes(StandardCharsets.UTF_8)));
            }
            builder.build();
            buffer.limit(buffer.capacity());
        }
        buffer.flip();
        FetchPartitionData data = new FetchPartitionData(Errors.NONE, 1 << 20, 0, MemoryRecords.readableRecords(buffer),
            Optional.empty(), OptionalLong.empty(), Optional.empty(), OptionalInt.empty(), false);
        ShareAcquiredRecords acquired = share.acquire(words[1], ShareAcquireMode.forId(Byte.parseByte(words[2])),
            Integer.parseInt(words[3]), Integer.parseInt(words[4]), share.nextFetchOffset(), data,
            FetchIsolation.HIGH_WATERMARK);
        return acquired.acquiredRecords().isEmpty() ? "-" : acquired.acquiredRecords().stream()
            .map(SharePartitions::text).collect(Collectors.joining(","));
    }

    private static String text(AcquiredRecords each) {
        return each.firstOffset() + "-" + each.lastOffset() + ":" + each.deliveryCount();
    }

    private static long[] range(String text) {
        String[] parts = text.split("-");
        return new long[] {Long.parseLong(parts[0]), Long.parseLong(parts[1])};
    }

    private static PersisterStateBatch stateBatch(String text) {
        String[] parts = text.split(":");
        long[] range = range(parts[0]);
        return new PersisterStateBatch(range[0], range[1], Byte.parseByte(parts[1]), Short.parseShort(parts[2]));
    }

    private static ShareAcknowledgementBatch acknowledgement(String text) {
        String[] parts = text.split(":");
        long[] range = range(parts[0]);
        List<Byte> types = Arrays.stream(parts[1].split(",")).map(Byte::parseByte).collect(Collectors.toList());
        return new ShareAcknowledgementBatch(range[0], range[1], types);
    }

    private String acknowledge(String member, List<String> given) {
        List<ShareAcknowledgementBatch> batches =
            given.stream().map(SharePartitions::acknowledgement).collect(Collectors.toList());
        try {
            return outcome(share.acknowledge(member, batches));
        } catch (NullPointerException defect) {
            // where nothing is in flight, and the range begins below the start offset
            return Errors.UNKNOWN_SERVER_ERROR.name();
        }
    }

    private static String outcome(CompletableFuture<Void> future) {
        try {
            future.join();
            return "ok";
        } catch (CompletionException failed) {
            return Errors.forException(failed.getCause()).name();
        }
    }

    /** Locks do not end. */
    private static class NoTimer implements Timer {
        @Override
        public void add(TimerTask task) {
        }

        @Override
        public boolean advanceClock(long timeoutMs) {
            return false;
        }

        @Override
        public int size() {
            return 0;
        }

        @Override
        public void close() {
        }
    }
}
