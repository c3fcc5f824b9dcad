import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.TimeIndex;

/**
 * Opens every index, checkpoint and producer snapshot below the given directories with Apache Kafka's classes, as a
 * broker does when it starts. Prints what it opened and how many entries that had; an exception ends it.
 */
public class ReadFiles {
    private static final int ANY_SIZE = -1;

    public static void main(String[] args) throws Exception {
        for (String directory : args) {
            try (Stream<Path> found = Files.walk(Path.of(directory))) {
                for (Path path : found.filter(Files::isRegularFile).sorted().toList()) {
                    read(path.toFile());
                }
            }
        }
    }

    private static void read(File file) throws Exception {
        String name = file.getName();
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        if (name.endsWith(".index")) {
            try (OffsetIndex index = new OffsetIndex(file, baseOffset(name), ANY_SIZE, false)) {
                index.sanityCheck();
                say("index", index.entries());
            }
        } else if (name.endsWith(".timeindex")) {
            try (TimeIndex index = new TimeIndex(file, baseOffset(name), ANY_SIZE, false)) {
                index.sanityCheck();
                say("timeindex", index.entries());
            }
        } else if (name.endsWith(".snapshot")) {
            say("snapshot", ProducerStateManager.readSnapshot(file).size());
        } else if (name.equals("leader-epoch-checkpoint")) {
            say(name, new LeaderEpochCheckpointFile(file, failures).read().size());
        } else if (List.of("recovery-point-offset-checkpoint", "replication-offset-checkpoint",
                "log-start-offset-checkpoint").contains(name)) {
            say(name, new OffsetCheckpointFile(file, failures).read().size());
        }
    }

    private static long baseOffset(String name) {
        return Long.parseLong(name.substring(0, name.indexOf('.')));
    }

    private static void say(String kind, int entries) {
        System.out.println(kind + " " + entries);
    }
}
