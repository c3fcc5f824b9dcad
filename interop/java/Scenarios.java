package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.ElectLeadersResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.metrics.QuorumControllerMetrics;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.RaftClient;
import org.apache.kafka.raft.internals.MemoryBatchReader;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.fault.FaultHandler;
import org.apache.kafka.snapshot.SnapshotWriter;

/**
 * Plays scenario files (layer controller) on a QuorumController of Apache Kafka, whose log is in memory.
 *
 * <pre>
 *     Scenarios ASKED.json ANSWERED.json     the same scenarios, each step with what came out as its `expect`
 * </pre>
 *
 * Time stands still, but before a registration, so that the session of the process before it has ended.
 */
public final class Scenarios {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int ME = 3000;
    private static final long FIRST_OFFSET = 100_000;
    private static final long FAR = 1_000_000;
    private static final String CLUSTER = "conformance";
    private static final long PATIENCE_S = 20;
    private static final String ELR = "eligible.leader.replicas.version";
    private static final Map<String, short[]> BROKER_FEATURES = Map.of(
        "metadata.version", new short[] {7, 29}, "kraft.version", new short[] {0, 1}, ELR, new short[] {0, 1});

    public static void main(String[] args) throws Exception {
        ObjectNode answered = JSON.createObjectNode();
        ArrayNode scenarios = answered.putArray("scenarios");
        for (JsonNode scenario : JSON.readTree(new File(args[0])).get("scenarios")) {
            ObjectNode copy = scenario.deepCopy();
            ArrayNode steps = copy.putArray("steps");
            try (World world = new World(scenario.get("setup"))) {
                for (JsonNode step : scenario.get("steps")) {
                    ObjectNode played = steps.addObject();
                    played.set("event", step.get("event"));
                    played.set("expect", world.play(step.get("event")));
                }
            }
            scenarios.add(copy);
        }
        JSON.writeValue(new File(args[1]), answered);
        System.exit(0);
    }

    /** One controller and what it has written. */
    private static final class World implements AutoCloseable {
        private final Clock clock = new Clock();
        private final Log log = new Log();
        private final QuorumController controller;
        private final Map<Uuid, String> names = new HashMap<>();
        private final Map<String, Uuid> ids = new HashMap<>();
        private final Map<Integer, Integer> lives = new HashMap<>();
        private MetadataImage image = MetadataImage.EMPTY;
        private int seen;

        World(JsonNode setup) throws Exception {
            Properties properties = new Properties();
            properties.put("process.roles", "controller");
            properties.put("node.id", String.valueOf(ME));
            properties.put("listeners", "CONTROLLER://localhost:9093");
            properties.put("controller.listener.names", "CONTROLLER");
            properties.put("controller.quorum.voters", ME + "@localhost:9093");
            setup.path("config").path("static").fields()
                .forEachRemaining(each -> properties.put(each.getKey(), each.getValue().asText()));
            kafka.server.KafkaConfig config = new kafka.server.KafkaConfig(properties);
            FaultHandler fault = (message, cause) -> new RuntimeException(message, cause);
            controller = new QuorumController.Builder(ME, CLUSTER)
                .setTime(clock)
                .setRaftClient(log)
                .setFatalFaultHandler(fault)
                .setNonFatalFaultHandler(fault)
                .setConfigSchema(kafka.server.KafkaRaftServer.configSchema())
                .setConfigurationValidator(new kafka.server.ControllerConfigurationValidator(config))
                .setStaticConfig(config.originals())
                .setQuorumFeatures(
                    new QuorumFeatures(ME, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(ME)))
                .setSessionTimeoutNs(TimeUnit.SECONDS.toNanos(9))
                .setFenceStaleBrokerIntervalNs(Long.MAX_VALUE / 4)
                .setLeaderImbalanceCheckIntervalNs(OptionalLong.empty())
                .setMaxIdleIntervalNs(OptionalLong.empty())
                .setUncleanLeaderElectionCheckIntervalMs(TimeUnit.DAYS.toMillis(1000))
                .setBootstrapMetadata(BootstrapMetadata.fromVersion(MetadataVersion.LATEST_PRODUCTION, "nobody"))
                .setMetrics(new QuorumControllerMetrics(Optional.empty(), clock, 9000))
                .build();
            List<ApiMessageAndVersion> records = records(setup);
            log.listener.handleCommit(MemoryBatchReader.of(List.of(Batch.data(0, 1, 0, 0, records)), reader -> { }));
            replay(records);
            log.end = FIRST_OFFSET;
            log.leader = new LeaderAndEpoch(OptionalInt.of(ME), 2);
            log.listener.handleLeaderChange(log.leader);
            while (!controller.isActive()) {
                Thread.sleep(1);
            }
            written();
        }

        private List<ApiMessageAndVersion> records(JsonNode setup) {
            List<ApiMessageAndVersion> records = new ArrayList<>();
            for (String name : List.of("metadata.version", ELR)) {
                short level = (short) setup.get("features").get(name).asInt();
                records.add(record(new FeatureLevelRecord().setName(name).setFeatureLevel(level), 0));
            }
            setup.get("brokers").forEach(broker -> records.add(record(registration(broker), 3)));
            for (JsonNode partition : setup.get("partitions")) {
                String topic = partition.get("topic").asText();
                if (!ids.containsKey(topic)) {
                    ids.put(topic, new Uuid(1, ids.size() + 1));
                    records.add(record(new TopicRecord().setName(topic).setTopicId(ids.get(topic)), 0));
                }
                records.add(record(partition(partition, ids.get(topic)), 2));
            }
            JsonNode config = setup.get("config");
            configs(records, ConfigResource.Type.BROKER, "", config.get("cluster"));
            config.get("broker").fields().forEachRemaining(
                each -> configs(records, ConfigResource.Type.BROKER, each.getKey(), each.getValue()));
            config.get("topic").fields().forEachRemaining(
                each -> configs(records, ConfigResource.Type.TOPIC, each.getKey(), each.getValue()));
            return records;
        }

        private static RegisterBrokerRecord registration(JsonNode broker) {
            int id = broker.get("id").asInt();
            String state = broker.get("state").asText();
            RegisterBrokerRecord record = new RegisterBrokerRecord()
                .setBrokerId(id)
                .setIncarnationId(incarnation(id, 0))
                .setBrokerEpoch(100 + id)
                .setFenced(state.equals("fenced"))
                .setInControlledShutdown(state.equals("controlled_shutdown"))
                .setLogDirs(List.of(directory(id)));
            record.endPoints().add(
                new RegisterBrokerRecord.BrokerEndpoint().setName("PLAINTEXT").setHost("broker-" + id).setPort(9092));
            BROKER_FEATURES.forEach((name, range) -> record.features().add(
                new RegisterBrokerRecord.BrokerFeature()
                    .setName(name).setMinSupportedVersion(range[0]).setMaxSupportedVersion(range[1])));
            return record;
        }

        private static PartitionRecord partition(JsonNode given, Uuid topic) {
            List<Integer> replicas = ints(given.get("replicas"));
            return new PartitionRecord()
                .setTopicId(topic)
                .setPartitionId(given.get("partition").asInt())
                .setReplicas(replicas)
                .setDirectories(replicas.stream().map(Scenarios::directory).toList())
                .setIsr(ints(given.get("isr")))
                .setLeader(given.get("leader").asInt())
                .setLeaderEpoch(given.get("leaderEpoch").asInt())
                .setPartitionEpoch(given.get("partitionEpoch").asInt())
                .setLeaderRecoveryState(recoveryState(given))
                .setEligibleLeaderReplicas(orNull(ints(given.get("elr"))))
                .setLastKnownElr(orNull(ints(given.get("lastKnownElr"))));
        }

        private static void configs(
            List<ApiMessageAndVersion> records, ConfigResource.Type type, String resource, JsonNode values
        ) {
            values.fields().forEachRemaining(each -> records.add(record(
                new ConfigRecord().setResourceType(type.id()).setResourceName(resource)
                    .setName(each.getKey()).setValue(each.getValue().asText()), 0)));
        }

        // -- steps ------------------------------------------------------------------------------------------------

        ObjectNode play(JsonNode event) throws Exception {
            ObjectNode expect = JSON.createObjectNode().put("error", "NONE");
            try {
                act(event, expect);
            } catch (Exception problem) {
                expect.removeAll().put("error", Errors.forException(problem).name());
            }
            ArrayNode records = expect.putArray("records");
            written().forEach(record -> records.add(shown(record)));
            ArrayNode partitions = expect.putArray("partitions");
            for (String topic : new TreeSet<>(image.topics().topicsByName().keySet())) {
                Map<Integer, PartitionRegistration> states = image.topics().getTopic(topic).partitions();
                for (int number : new TreeSet<>(states.keySet())) {
                    shown(partitions.addObject().put("topic", topic).put("partition", number), states.get(number));
                }
            }
            ArrayNode brokers = expect.putArray("brokers");
            for (int id : new TreeSet<>(image.cluster().brokers().keySet())) {
                BrokerRegistration broker = image.cluster().broker(id);
                String active = broker.inControlledShutdown() ? "controlled_shutdown" : "unfenced";
                brokers.addObject()
                    .put("id", id).put("epoch", broker.epoch()).put("state", broker.fenced() ? "fenced" : active);
            }
            return expect;
        }

        private void act(JsonNode event, ObjectNode expect) throws Exception {
            switch (event.get("type").asText()) {
                case "alter_partition" -> alterPartition(event, expect);
                case "fence_broker" -> fence(event.get("broker").asInt());
                case "heartbeat" -> heartbeat(event, expect);
                case "register_broker" -> register(event, expect);
                case "elect_leaders" -> elect(event, expect);
                case "periodic" -> {
                    boolean balances = event.get("task").asText().equals("electPreferred");
                    boolean again = write(() -> balances
                        ? controller.replicationControl().maybeBalancePartitionLeaders()
                        : controller.replicationControl().maybeElectUncleanLeaders());
                    expect.putObject("response").put("rescheduleImmediately", again);
                }
                case "alter_config" -> alterConfig(event, expect);
                case "create_topic" -> createTopic(event, expect);
                default -> throw new IllegalArgumentException(event.toString());
            }
        }

        private void alterPartition(JsonNode event, ObjectNode expect) throws Exception {
            int broker = event.get("broker").asInt();
            int version = event.path("version").asInt(3);
            PartitionRegistration state =
                image.topics().getTopic("foo").partitions().get(event.get("partition").asInt());
            List<AlterPartitionRequestData.BrokerState> isr = new ArrayList<>();
            for (JsonNode member : event.get("newIsr")) {
                int id = member.path("id").asInt(member.asInt());
                isr.add(new AlterPartitionRequestData.BrokerState()
                    .setBrokerId(id).setBrokerEpoch(member.path("epoch").asLong(epochOf(id))));
            }
            AlterPartitionRequestData.PartitionData asked = new AlterPartitionRequestData.PartitionData()
                .setPartitionIndex(event.get("partition").asInt())
                .setLeaderEpoch(event.path("leaderEpoch").asInt(state.leaderEpoch))
                .setPartitionEpoch(event.path("partitionEpoch").asInt(state.partitionEpoch))
                .setLeaderRecoveryState(recoveryState(event));
            if (version < 3) {
                asked.setNewIsr(isr.stream().map(AlterPartitionRequestData.BrokerState::brokerId).toList());
            } else {
                asked.setNewIsrWithEpochs(isr);
            }
            AlterPartitionRequestData request = new AlterPartitionRequestData()
                .setBrokerId(broker).setBrokerEpoch(event.path("brokerEpoch").asLong(epochOf(broker)));
            request.topics().add(
                new AlterPartitionRequestData.TopicData().setTopicId(ids.get("foo")).setPartitions(List.of(asked)));
            AlterPartitionResponseData response = done(controller.alterPartition(context(version), request));
            if (response.errorCode() != 0) {
                expect.put("error", Errors.forCode(response.errorCode()).name());
                return;
            }
            AlterPartitionResponseData.PartitionData answer = response.topics().get(0).partitions().get(0);
            expect.put("error", Errors.forCode(answer.errorCode()).name());
            if (answer.errorCode() == 0) {
                ObjectNode shown = expect.putObject("response")
                    .put("leaderId", answer.leaderId())
                    .put("leaderEpoch", answer.leaderEpoch())
                    .put("partitionEpoch", answer.partitionEpoch())
                    .put("leaderRecoveryState", answer.leaderRecoveryState());
                list(shown, "isr", answer.isr());
            }
        }

        /** What the end of a session does, which for a class of standing time never comes. */
        private void fence(int broker) throws Exception {
            write(() -> {
                List<ApiMessageAndVersion> records = new ArrayList<>();
                var handle = ReplicationControlManager.class
                    .getDeclaredMethod("handleBrokerFenced", int.class, List.class);
                handle.setAccessible(true);
                try {
                    handle.invoke(controller.replicationControl(), broker, records);
                } catch (InvocationTargetException problem) {
                    throw new RuntimeException(problem.getCause());
                }
                controller.clusterControl().heartbeatManager().fence(broker);
                return ControllerResult.of(records, null);
            });
        }

        private void heartbeat(JsonNode event, ObjectNode expect) throws Exception {
            int broker = event.get("broker").asInt();
            BrokerHeartbeatReply reply = done(controller.processBrokerHeartbeat(context(1),
                new BrokerHeartbeatRequestData()
                    .setBrokerId(broker)
                    .setBrokerEpoch(event.path("brokerEpoch").asLong(epochOf(broker)))
                    .setCurrentMetadataOffset(event.path("currentMetadataOffset").asLong(FAR))
                    .setWantFence(event.path("wantFence").asBoolean(false))
                    .setWantShutDown(event.path("wantShutDown").asBoolean(false))));
            expect.putObject("response")
                .put("isCaughtUp", reply.isCaughtUp())
                .put("isFenced", reply.isFenced())
                .put("shouldShutDown", reply.shouldShutDown());
        }

        private void register(JsonNode event, ObjectNode expect) throws Exception {
            int broker = event.get("broker").asInt();
            clock.ms += TimeUnit.MINUTES.toMillis(1);
            if (event.path("incarnation").asText("new").equals("new")) {
                lives.merge(broker, 1, Integer::sum);
            }
            BrokerRegistrationRequestData request = new BrokerRegistrationRequestData()
                .setBrokerId(broker)
                .setClusterId(event.path("clusterId").asText(CLUSTER))
                .setIncarnationId(incarnation(broker, lives.getOrDefault(broker, 0)))
                .setLogDirs(List.of(directory(broker)))
                .setPreviousBrokerEpoch(event.path("previousBrokerEpoch").asLong(-1));
            request.listeners().add(
                new BrokerRegistrationRequestData.Listener()
                    .setName("PLAINTEXT").setHost("broker-" + broker).setPort(9092));
            boolean lacksElr = event.path("noElrFeature").asBoolean(false);
            BROKER_FEATURES.forEach((name, range) -> {
                if (!(lacksElr && name.equals(ELR))) {
                    request.features().add(new BrokerRegistrationRequestData.Feature()
                        .setName(name).setMinSupportedVersion(range[0]).setMaxSupportedVersion(range[1]));
                }
            });
            long epoch = done(controller.registerBroker(context(event.path("version").asInt(4)), request)).epoch();
            expect.putObject("response").put("brokerEpoch", epoch);
        }

        private void elect(JsonNode event, ObjectNode expect) throws Exception {
            ElectLeadersRequestData request = new ElectLeadersRequestData()
                .setElectionType((byte) event.get("electionType").asInt()).setTopicPartitions(null);
            if (event.get("partitions").isArray()) {
                Map<String, List<Integer>> topics = new LinkedHashMap<>();
                event.get("partitions").forEach(named -> topics
                    .computeIfAbsent(named.get("topic").asText(), name -> new ArrayList<>())
                    .add(named.get("partition").asInt()));
                request.setTopicPartitions(new ElectLeadersRequestData.TopicPartitionsCollection());
                topics.forEach((topic, partitions) -> request.topicPartitions().add(
                    new ElectLeadersRequestData.TopicPartitions().setTopic(topic).setPartitions(partitions)));
            }
            ElectLeadersResponseData response = done(controller.electLeaders(context(2), request));
            if (response.errorCode() != 0) {
                expect.put("error", Errors.forCode(response.errorCode()).name());
                return;
            }
            ArrayNode rows = expect.putArray("response");
            response.replicaElectionResults().forEach(topic -> topic.partitionResult().forEach(result -> rows.addObject()
                .put("topic", topic.topic())
                .put("partition", result.partitionId())
                .put("error", Errors.forCode(result.errorCode()).name())));
        }

        private void alterConfig(JsonNode event, ObjectNode expect) throws Exception {
            boolean isTopic = event.get("resourceType").asText().equals("topic");
            ConfigResource resource = new ConfigResource(
                isTopic ? ConfigResource.Type.TOPIC : ConfigResource.Type.BROKER, event.get("resourceName").asText());
            String value = event.has("value") ? event.get("value").asText() : null;
            Map<String, Map.Entry<AlterConfigOp.OpType, String>> change = new HashMap<>();
            change.put(event.get("name").asText(),
                new java.util.AbstractMap.SimpleEntry<>(AlterConfigOp.OpType.valueOf(event.get("op").asText()), value));
            expect.put("error", done(controller.incrementalAlterConfigs(context(1), Map.of(resource, change), false))
                .get(resource).error().name());
        }

        private void createTopic(JsonNode event, ObjectNode expect) throws Exception {
            CreateTopicsRequestData.CreatableTopic topic = new CreateTopicsRequestData.CreatableTopic()
                .setName(event.get("topic").asText()).setNumPartitions(-1).setReplicationFactor((short) -1);
            for (JsonNode brokers : event.get("assignments")) {
                topic.assignments().add(new CreateTopicsRequestData.CreatableReplicaAssignment()
                    .setPartitionIndex(topic.assignments().size()).setBrokerIds(ints(brokers)));
            }
            event.get("configs").fields().forEachRemaining(each -> topic.configs().add(
                new CreateTopicsRequestData.CreatableTopicConfig()
                    .setName(each.getKey()).setValue(each.getValue().asText())));
            CreateTopicsRequestData request = new CreateTopicsRequestData();
            request.topics().add(topic);
            short code = done(controller.createTopics(context(7), request, Set.of())).topics().iterator().next()
                .errorCode();
            expect.put("error", Errors.forCode(code).name());
        }

        // -- the log ----------------------------------------------------------------------------------------------

        private <T> T write(QuorumController.ControllerWriteOperation<T> operation) throws Exception {
            return done(controller.appendWriteEvent("scenario", OptionalLong.empty(), operation));
        }

        private static <T> T done(CompletableFuture<T> future) throws Exception {
            try {
                return future.get(PATIENCE_S, TimeUnit.SECONDS);
            } catch (ExecutionException problem) {
                throw problem.getCause() instanceof Exception cause ? cause : problem;
            }
        }

        /** Records since the last call. Commits are events of the controller's queue: a read waits until they are through. */
        private List<ApiMessageAndVersion> written() throws Exception {
            done(controller.findAllTopicIds(context(1)));
            List<ApiMessageAndVersion> fresh = List.copyOf(log.written.subList(seen, log.written.size()));
            seen += fresh.size();
            replay(fresh);
            return fresh;
        }

        private void replay(List<ApiMessageAndVersion> records) {
            MetadataDelta delta = new MetadataDelta(image);
            for (ApiMessageAndVersion record : records) {
                if (record.message() instanceof TopicRecord topic) {
                    names.put(topic.topicId(), topic.name());
                }
                delta.replay(record.message());
            }
            image = delta.apply(new MetadataProvenance(image.offset() + records.size(), 1, 0, true));
        }

        private long epochOf(int broker) {
            BrokerRegistration known = image.cluster().broker(broker);
            return known == null ? -1 : known.epoch();
        }

        // -- what is shown ----------------------------------------------------------------------------------------

        private ObjectNode shown(ApiMessageAndVersion record) {
            ApiMessage message = record.message();
            ObjectNode row = JSON.createObjectNode()
                .put("type", message.getClass().getSimpleName()).put("version", record.version());
            if (message instanceof PartitionChangeRecord change) {
                shown(row, change);
            } else if (message instanceof PartitionRecord partition) {
                row.put("partition", partition.partitionId()).put("leader", partition.leader())
                    .put("leaderEpoch", partition.leaderEpoch()).put("partitionEpoch", partition.partitionEpoch());
                list(row, "replicas", partition.replicas());
                list(row, "isr", partition.isr());
            } else if (message instanceof BrokerRegistrationChangeRecord change) {
                row.put("brokerId", change.brokerId()).put("brokerEpoch", change.brokerEpoch());
                if (change.fenced() != 0) {
                    row.put("fenced", change.fenced());
                }
                if (change.inControlledShutdown() != 0) {
                    row.put("inControlledShutdown", change.inControlledShutdown());
                }
            } else if (message instanceof RegisterBrokerRecord broker) {
                row.put("brokerId", broker.brokerId()).put("brokerEpoch", broker.brokerEpoch())
                    .put("fenced", broker.fenced()).put("inControlledShutdown", broker.inControlledShutdown());
            } else if (message instanceof TopicRecord topic) {
                row.put("name", topic.name());
            } else if (message instanceof ConfigRecord config) {
                row.put("resourceType", config.resourceType()).put("resourceName", config.resourceName())
                    .put("name", config.name()).put("value", config.value());
            } else if (message instanceof ClearElrRecord clear) {
                row.put("topicName", clear.topicName());
            }
            return row;
        }

        private void shown(ObjectNode row, PartitionChangeRecord change) {
            row.put("topic", names.get(change.topicId())).put("partition", change.partitionId());
            list(row, "isr", change.isr());
            list(row, "replicas", change.replicas());
            list(row, "eligibleLeaderReplicas", change.eligibleLeaderReplicas());
            list(row, "lastKnownElr", change.lastKnownElr());
            if (change.leader() != -2) {
                row.put("leader", change.leader());
            }
            if (change.leaderRecoveryState() != -1) {
                row.put("leaderRecoveryState", change.leaderRecoveryState());
            }
        }

        private static void shown(ObjectNode row, PartitionRegistration state) {
            row.put("leader", state.leader)
                .put("leaderEpoch", state.leaderEpoch)
                .put("partitionEpoch", state.partitionEpoch)
                .put("leaderRecoveryState", state.leaderRecoveryState.name());
            list(row, "replicas", boxed(state.replicas));
            list(row, "isr", boxed(state.isr));
            list(row, "elr", boxed(state.elr));
            list(row, "lastKnownElr", boxed(state.lastKnownElr));
        }

        @Override
        public void close() throws InterruptedException {
            controller.close();
        }
    }

    private static ApiMessageAndVersion record(ApiMessage message, int version) {
        return new ApiMessageAndVersion(message, (short) version);
    }

    private static ControllerRequestContext context(int version) {
        RequestHeaderData header = new RequestHeaderData().setRequestApiVersion((short) version);
        return new ControllerRequestContext(header, KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
    }

    private static Uuid incarnation(int broker, int life) {
        return new Uuid(1000 + life, broker);
    }

    private static Uuid directory(int broker) {
        return new Uuid(2000, broker);
    }

    private static byte recoveryState(JsonNode given) {
        return (byte) (given.path("leaderRecoveryState").asText("RECOVERED").equals("RECOVERED") ? 0 : 1);
    }

    private static List<Integer> ints(JsonNode list) {
        List<Integer> found = new ArrayList<>();
        list.forEach(each -> found.add(each.asInt()));
        return found;
    }

    private static List<Integer> orNull(List<Integer> list) {
        return list.isEmpty() ? null : list;
    }

    private static List<Integer> boxed(int[] numbers) {
        return java.util.Arrays.stream(numbers).boxed().toList();
    }

    private static void list(ObjectNode row, String name, Collection<Integer> members) {
        if (members != null) {
            ArrayNode array = row.putArray(name);
            members.forEach(array::add);
        }
    }

    /** Stands still until somebody moves it. */
    private static final class Clock implements Time {
        private volatile long ms = 1_000_000;

        @Override
        public long milliseconds() {
            return ms;
        }

        @Override
        public long nanoseconds() {
            return TimeUnit.MILLISECONDS.toNanos(ms);
        }

        @Override
        public void sleep(long forMs) {
            ms += forMs;
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    /** A quorum of one that commits at once. */
    private static final class Log implements RaftClient<ApiMessageAndVersion> {
        private final List<ApiMessageAndVersion> written = Collections.synchronizedList(new ArrayList<>());
        private final List<Batch<ApiMessageAndVersion>> prepared = new ArrayList<>();
        private Listener<ApiMessageAndVersion> listener;
        private volatile LeaderAndEpoch leader = LeaderAndEpoch.UNKNOWN;
        private volatile long end;

        @Override
        public void register(Listener<ApiMessageAndVersion> registered) {
            listener = registered;
        }

        @Override
        public void unregister(Listener<ApiMessageAndVersion> registered) { }

        @Override
        public synchronized long prepareAppend(int epoch, List<ApiMessageAndVersion> records) {
            prepared.add(Batch.data(end, epoch, 0, 0, List.copyOf(records)));
            end += records.size();
            return end - 1;
        }

        @Override
        public synchronized void schedulePreparedAppend() {
            for (Batch<ApiMessageAndVersion> batch : prepared) {
                written.addAll(batch.records());
                listener.handleCommit(MemoryBatchReader.of(List.of(batch), reader -> { }));
            }
            prepared.clear();
        }

        @Override
        public LeaderAndEpoch leaderAndEpoch() {
            return leader;
        }

        @Override
        public OptionalInt nodeId() {
            return OptionalInt.of(ME);
        }

        @Override
        public OptionalLong highWatermark() {
            return OptionalLong.of(end);
        }

        @Override
        public long logEndOffset() {
            return end;
        }

        @Override
        public KRaftVersion kraftVersion() {
            return KRaftVersion.KRAFT_VERSION_1;
        }

        @Override
        public Optional<Node> voterNode(int id, ListenerName name) {
            return Optional.empty();
        }

        @Override
        public Optional<SnapshotWriter<ApiMessageAndVersion>> createSnapshot(OffsetAndEpoch id, long timestamp) {
            return Optional.empty();
        }

        @Override
        public Optional<OffsetAndEpoch> latestSnapshotId() {
            return Optional.empty();
        }

        @Override
        public void upgradeKRaftVersion(int epoch, KRaftVersion version, boolean validateOnly) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void resign(int epoch) {
            throw new IllegalStateException("the controller failed: it gives up epoch " + epoch);
        }

        @Override
        public CompletableFuture<Void> shutdown(int timeoutMs) {
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public void close() { }
    }
}
