import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/**
 * Asks Apache Kafka's StandardAuthorizer: one line in (words between tabs, numbers as on the wire), one line out.
 *
 * <pre>
 *     new SUPER_USERS DEFAULT                                     an authorizer without ACLs
 *     put ID TYPE NAME PATTERN PRINCIPAL HOST OPERATION PERMISSION
 *     drop ID
 *     may PRINCIPAL HOST OPERATION TYPE NAME                      ALLOWED or DENIED
 *     any PRINCIPAL HOST OPERATION TYPE                           the same, of some resource of the type
 *     find TYPE NAME PATTERN PRINCIPAL HOST OPERATION PERMISSION  the ACLs that a filter matches; "-" for null
 *     principal HEX                                               a forwarded principal: its text and its bytes
 *     host TEXT                                                   an address as ACLs are compared with it
 * </pre>
 */
public class Decisions {
    private static StandardAuthorizer authorizer;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                out.println(answer(line.split("\t", -1)));
            } catch (Exception | Error problem) {
                out.println("error " + String.valueOf(problem).replace('\n', ' '));
            }
        }
        out.flush();
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "new":
                Map<String, Object> config = new HashMap<>();
                config.put(StandardAuthorizer.SUPER_USERS_CONFIG, words[1]);
                config.put(StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, words[2]);
                authorizer = new StandardAuthorizer();
                authorizer.configure(config);
                authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
                authorizer.completeInitialLoad();
                return "ok";
            case "put":
                authorizer.addAcl(id(words[1]), new StandardAcl(
                    ResourceType.fromCode(number(words[2])), words[3], PatternType.fromCode(number(words[4])), words[5],
                    words[6], AclOperation.fromCode(number(words[7])), AclPermissionType.fromCode(number(words[8]))));
                return "ok";
            case "drop":
                authorizer.removeAcl(id(words[1]));
                return "ok";
            case "may":
                ResourcePattern asked = new ResourcePattern(
                    ResourceType.fromCode(number(words[4])), words[5], PatternType.LITERAL);
                Action action = new Action(AclOperation.fromCode(number(words[3])), asked, 1, false, false);
                return authorizer.authorize(new Client(words[1], words[2]), List.of(action)).get(0).toString();
            case "any":
                return authorizer.authorizeByResourceType(new Client(words[1], words[2]),
                    AclOperation.fromCode(number(words[3])), ResourceType.fromCode(number(words[4]))).toString();
            case "find":
                return find(words);
            case "principal":
                DefaultKafkaPrincipalBuilder builder = new DefaultKafkaPrincipalBuilder(null, null);
                KafkaPrincipal principal = builder.deserialize(HexFormat.of().parseHex(words[1]));
                return principal + "\t" + HexFormat.of().formatHex(builder.serialize(principal));
            case "host":
                return InetAddress.getByName(words[1]).getHostAddress();
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String find(String[] words) {
        AclBindingFilter filter = new AclBindingFilter(
            new ResourcePatternFilter(
                ResourceType.fromCode(number(words[1])), text(words[2]), PatternType.fromCode(number(words[3]))),
            new AccessControlEntryFilter(
                text(words[4]), text(words[5]), AclOperation.fromCode(number(words[6])),
                AclPermissionType.fromCode(number(words[7]))));
        TreeSet<String> found = new TreeSet<>();
        for (AclBinding binding : authorizer.acls(filter)) {
            found.add(String.join(",", String.valueOf(binding.pattern().resourceType().code()), binding.pattern().name(),
                String.valueOf(binding.pattern().patternType().code()), binding.entry().principal(),
                binding.entry().host(), String.valueOf(binding.entry().operation().code()),
                String.valueOf(binding.entry().permissionType().code())));
        }
        return String.join(" ", found);
    }

    private static byte number(String word) {
        return Byte.parseByte(word);
    }

    private static String text(String word) {
        return word.equals("-") ? null : word;
    }

    private static Uuid id(String word) {
        return new Uuid(1, Long.parseLong(word));
    }

    /** Who asks. */
    private record Client(String principalText, String host) implements AuthorizableRequestContext {
        @Override
        public KafkaPrincipal principal() {
            return SecurityUtils.parseKafkaPrincipal(principalText);
        }

        @Override
        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (java.net.UnknownHostException problem) {
                throw new IllegalArgumentException(problem);
            }
        }

        @Override
        public String listenerName() {
            return "PLAINTEXT";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        @Override
        public int requestType() {
            return 0;
        }

        @Override
        public int requestVersion() {
            return 0;
        }

        @Override
        public String clientId() {
            return "";
        }

        @Override
        public int correlationId() {
            return 0;
        }
    }
}
