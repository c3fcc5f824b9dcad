import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/**
 * Asks Apache Kafka's StripedReplicaPlacer: one line in (words between tabs), one line out.
 *
 * <pre>
 *     SEED PARTITIONS FACTOR ID:RACK:FENCED ...     "1,2 2,3": replicas of each partition; or "refused"
 * </pre>
 *
 * An empty RACK is none; FENCED is true or false.
 */
public class Placement {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split("\t")));
        }
        out.flush();
    }

    private static String answer(String[] words) {
        List<UsableBroker> brokers = new ArrayList<>();
        for (int at = 3; at < words.length; at++) {
            String[] parts = words[at].split(":", -1);
            Optional<String> rack = parts[1].isEmpty() ? Optional.empty() : Optional.of(parts[1]);
            brokers.add(new UsableBroker(Integer.parseInt(parts[0]), rack, Boolean.parseBoolean(parts[2])));
        }
        ClusterDescriber cluster = new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            @Override
            public Uuid defaultDir(int brokerId) {
                return Uuid.ZERO_UUID;
            }
        };
        PlacementSpec spec = new PlacementSpec(0, Integer.parseInt(words[1]), Short.parseShort(words[2]));
        try {
            return new StripedReplicaPlacer(new Random(Long.parseLong(words[0]))).place(spec, cluster).assignments()
                .stream()
                .map(one -> one.replicas().stream().map(String::valueOf).collect(Collectors.joining(",")))
                .collect(Collectors.joining(" "));
        } catch (InvalidReplicationFactorException refused) {
            return "refused";
        }
    }
}
