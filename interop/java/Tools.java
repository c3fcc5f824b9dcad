import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the command lines of Apache Kafka's tools one after the other in one JVM, which is what makes dozens of them
 * quick. A line on stdin is a JSON array, the tool's class and its arguments; the answer is a line with what the tool
 * printed and its exit code.
 */
public class Tools {
    /** No exception of a tool's own: nothing in it may catch this. */
    private static final class Ended extends Error {
        private final int code;

        private Ended(int code) {
            super(null, null, false, false);
            this.code = code;
        }
    }

    /** The first exit of a tool counts: some catch whatever that throws, and exit again. */
    private static Ended ended;

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        ObjectMapper json = new ObjectMapper();
        Exit.setExitProcedure((code, message) -> {
            if (message != null) {
                System.err.println(message);
            }
            ended = ended == null ? new Ended(code) : ended;
            throw ended;
        });
        Exit.setShutdownHookAdder((name, hook) -> { });
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            int code = run(json.readValue(line, String[].class));
            answers.println(json.writeValueAsString(Map.of(
                "code", code,
                "out", out.toString(StandardCharsets.UTF_8),
                "err", err.toString(StandardCharsets.UTF_8))));
        }
    }

    private static int run(String[] words) throws Exception {
        ended = null;
        String[] arguments = Arrays.copyOfRange(words, 1, words.length);
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return ended == null ? 0 : ended.code;
        } catch (InvocationTargetException thrown) {
            if (ended != null) {
                return ended.code;
            }
            thrown.getCause().printStackTrace();
            return 1;
        }
    }
}
