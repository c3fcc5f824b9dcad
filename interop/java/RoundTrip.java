import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;

/**
 * Reads bytes with Apache Kafka's classes and writes what they understood again: one line in, one line out.
 *
 * <pre>
 *     message CLASS VERSION HEX     a request, response or control record
 *     metadata HEX                  the value of a metadata record, frame included
 *     group HEX HEX                 key and value of a record of __consumer_offsets; "null" for no value
 *     snapshot FILE FILE            a producer snapshot: read from the first, written to the second
 * </pre>
 *
 * The answer is the bytes in hex (key and value for a group record, "ok" for a snapshot) or "error" and why.
 */
public class RoundTrip {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            try {
                out.println(answer(words));
            } catch (Exception | Error problem) {
                out.println("error " + String.valueOf(problem).replace('\n', ' '));
            }
        }
        out.flush();
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "message":
                return message(words[1], Short.parseShort(words[2]), HEX.parseHex(words[3]));
            case "metadata":
                return metadata(HEX.parseHex(words[1]));
            case "group":
                return group(bytes(words[1]), bytes(words[2]));
            case "snapshot":
                return snapshot(new File(words[1]), new File(words[2]));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String message(String name, short version, byte[] data) throws Exception {
        Message message = (Message) Class.forName(name).getDeclaredConstructor().newInstance();
        ByteBufferAccessor in = new ByteBufferAccessor(ByteBuffer.wrap(data));
        message.read(in, version);
        if (in.remaining() != 0) {
            throw new IllegalStateException(in.remaining() + " bytes left");
        }
        return hex(MessageUtil.toByteBufferAccessor(message, version).buffer());
    }

    private static String metadata(byte[] data) {
        MetadataRecordSerde serde = MetadataRecordSerde.INSTANCE;
        ApiMessageAndVersion record = serde.read(new ByteBufferAccessor(ByteBuffer.wrap(data)), data.length);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer written = ByteBuffer.allocate(serde.recordSize(record, cache));
        serde.write(record, cache, new ByteBufferAccessor(written));
        written.flip();
        return hex(written);
    }

    private static String group(ByteBuffer key, ByteBuffer value) {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        CoordinatorRecord record = serde.deserialize(key, value);
        byte[] written = serde.serializeValue(record);
        return HEX.formatHex(serde.serializeKey(record)) + " " + (written == null ? "null" : HEX.formatHex(written));
    }

    private static String snapshot(File source, File target) throws Exception {
        Map<Long, ProducerStateEntry> entries = new LinkedHashMap<>();
        for (ProducerStateEntry entry : ProducerStateManager.readSnapshot(source)) {
            entries.put(entry.producerId(), entry);
        }
        ProducerStateManager.writeSnapshot(target, entries, true);
        return "ok";
    }

    private static ByteBuffer bytes(String hex) {
        return hex.equals("null") ? null : ByteBuffer.wrap(HEX.parseHex(hex));
    }

    private static String hex(ByteBuffer buffer) {
        byte[] data = new byte[buffer.remaining()];
        buffer.get(data);
        return HEX.formatHex(data);
    }
}
