"""What each configuration is for, in a sentence: the documentation of DescribeConfigs (KIP-569).

Of what heirlog does not have (`absent_configs`) the family's sentence says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heirlog.metadata.definition import ConfigKey

WITHOUT_EFFECT: Final = "Accepted for compatibility with Apache Kafka; it has no effect."

_TEXTS: Final = """
process.roles  Whether the node is a broker, a controller, or both.
node.id  The number of the node. Each node of a cluster has its own number.
broker.id  Another name of node.id.
broker.rack  The rack of the broker; replicas of a partition are spread over racks.
listeners  Where the node listens: NAME://host:port, an empty host for every interface.
advertised.listeners  The addresses that clients and brokers connect to, if they differ from listeners.
listener.security.protocol.map  The security protocol of each listener name.
inter.broker.listener.name  The listener over which brokers reach each other.
security.inter.broker.protocol  The protocol between brokers, if inter.broker.listener.name is not set.
early.start.listeners  Listeners that serve requests before ACLs are loaded.
controller.listener.names  The names of the controllers' listeners.
controller.quorum.voters  The controllers, as id@host:port; at kraft.version 0 they are the voters.
controller.quorum.bootstrap.servers  Addresses at which the controllers are found.
controller.quorum.election.timeout.ms  How long a controller without a leader waits before it asks for votes.
controller.quorum.fetch.timeout.ms  How long a controller waits for its leader before it asks for votes.
controller.quorum.election.backoff.max.ms  The longest time that a controller waits after its leader has resigned.
controller.quorum.request.timeout.ms  How long a node waits for an answer of a controller.
controller.quorum.auto.join.enable  Whether a controller that is not a voter adds itself, in place of a lost disk too.
controller.quorum.retry.backoff.ms  How long a broker waits after a failed fetch of the metadata.
log.dir  The directory of the logs, if log.dirs is not set.
log.dirs  The directories of the logs; replicas are spread over them.
metadata.log.dir  The directory of the metadata log; the default is the first of log.dirs.
num.partitions  How many partitions a topic gets if it is created without a number.
default.replication.factor  How many replicas a partition gets if the request does not say.
auto.create.topics.enable  Whether a topic is created when a client asks for it.
delete.topic.enable  Whether topics can be deleted.
min.insync.replicas  How many in-sync replicas a record needs to be committed; below that acks=all is refused.
unclean.leader.election.enable  Whether a replica that may lack committed records may lead when no other replica can.
unclean.recovery.manager.enabled  First level of the feature heirlog.recovery.version; without effect afterwards.
unclean.recovery.strategy  Balanced waits for replicas, Aggressive elects soon, None waits for an operator.
unclean.recovery.timeout.ms  How long an unclean recovery waits for replicas outside its quorum.
compression.type  The codec in which batches are stored; producer keeps what the producer chose.
compression.gzip.level  The compression level of gzip, for batches that are stored with it; -1 is gzip's default.
compression.lz4.level  The compression level of lz4, for batches that are stored with it.
compression.zstd.level  The compression level of zstd, for batches that are stored with it.
message.max.bytes  The largest batch that is accepted, in bytes after compression.
max.message.bytes  The largest batch that the topic accepts, in bytes after compression.
max.request.partition.size.limit  How many partitions one answer of DescribeTopicPartitions holds at most.
log.segment.bytes  The size at which a new segment begins.
segment.bytes  The size at which a new segment begins.
internal.segment.bytes  Overrides segment.bytes with smaller values, for tests.
log.roll.ms  The age at which a new segment begins.
log.roll.hours  log.roll.ms in hours.
segment.ms  The age at which a new segment begins.
log.retention.ms  How long records are kept; -1: forever.
log.retention.minutes  log.retention.ms in minutes.
log.retention.hours  log.retention.ms in hours.
retention.ms  How long records are kept; -1: forever.
log.retention.bytes  How many bytes of a partition are kept; -1: no limit.
retention.bytes  How many bytes of a partition are kept; -1: no limit.
log.retention.check.interval.ms  How often retention is applied.
log.cleanup.policy  Whether old segments are deleted, compacted by key, or both.
cleanup.policy  Whether old segments are deleted, compacted by key, or both.
log.flush.interval.messages  After how many records a log is flushed to disk.
flush.messages  After how many records the log is flushed to disk.
log.flush.interval.ms  How long records may stay unflushed in a log.
flush.ms  How long records may stay unflushed in the log.
log.flush.scheduler.interval.ms  Used as log.flush.interval.ms if that is not set.
log.index.interval.bytes  How many bytes of records are between two entries of an index.
index.interval.bytes  How many bytes of records are between two entries of an index.
log.index.size.max.bytes  How large an index becomes before a new segment begins.
segment.index.bytes  How large an index becomes before a new segment begins.
log.segment.delete.delay.ms  How long the file of a deleted segment stays on disk.
file.delete.delay.ms  How long the file of a deleted segment stays on disk.
log.message.timestamp.type  Whether a record's timestamp is set by its producer or is the time of the append.
message.timestamp.type  Whether a record's timestamp is set by its producer or is the time of the append.
log.message.timestamp.before.max.ms  How far a record's timestamp may be behind the broker's clock.
message.timestamp.before.max.ms  How far a record's timestamp may be behind the broker's clock.
log.message.timestamp.after.max.ms  How far a record's timestamp may be ahead of the broker's clock.
message.timestamp.after.max.ms  How far a record's timestamp may be ahead of the broker's clock.
log.cleaner.enable  Whether compacted topics are compacted.
log.cleaner.io.max.bytes.per.second  How many bytes the cleaner reads and writes per second.
log.cleaner.dedupe.buffer.size  How much memory the cleaner may use for the keys of one pass.
log.cleaner.io.buffer.load.factor  How full the memory for keys may become.
log.cleaner.backoff.ms  How long the cleaner sleeps when there is nothing to clean.
log.cleaner.min.cleanable.ratio  The share of a log that must be dirty before the cleaner cleans it.
min.cleanable.dirty.ratio  The share of the log that must be dirty before the cleaner cleans it.
log.cleaner.delete.retention.ms  How long a tombstone is kept after it was first compacted.
delete.retention.ms  How long a tombstone is kept after it was first compacted.
log.cleaner.min.compaction.lag.ms  How old a record must be before it may be compacted.
min.compaction.lag.ms  How old a record must be before it may be compacted.
log.cleaner.max.compaction.lag.ms  How old a record may become before the cleaner must clean its log.
max.compaction.lag.ms  How old a record may become before the cleaner must clean its log.
producer.id.expiration.ms  How long a broker remembers a producer's sequence numbers after its last batch.
producer.id.expiration.check.interval.ms  How often a broker checks for expired producers.
queued.max.requests  How many requests of clients wait at most.
queued.max.request.bytes  How many bytes of requests wait at most; then each connection has one request; -1: no limit.
request.timeout.ms  How long a node waits for the answer of another.
socket.listen.backlog.size  How many new connections of a listener may wait for the node; 1024 if it is not set.
socket.request.max.bytes  The largest request that a node accepts, in bytes.
socket.connection.setup.timeout.ms  How long a node waits for a connection to another node.
max.connections  How many connections a broker has at most.
max.connection.creation.rate  How many connections a broker accepts per second.
max.connections.per.ip  How many connections one address may have.
max.connections.per.ip.overrides  max.connections.per.ip for single addresses, as host:count.
quota.window.num  How many windows the rates of client quotas are measured over.
quota.window.size.seconds  The length of a window in which client quotas are measured.
controller.quota.window.num  How many windows' worth of partitions a client may change at once.
controller.quota.window.size.seconds  The length of such a window.
connections.max.idle.ms  How long a connection may be idle before it is closed.
max.incremental.fetch.session.cache.slots  How many fetch sessions a broker keeps.
fetch.max.bytes  How much one answer to a fetch holds at most.
leader.replication.throttled.rate  How many bytes per second a leader sends to listed replicas outside the ISR.
follower.replication.throttled.rate  How many bytes per second a follower outside the ISR fetches for listed replicas.
leader.replication.throttled.replicas  The replicas that the rate counts, as partition:broker,...; * for all.
follower.replication.throttled.replicas  The replicas that the rate counts, as partition:broker,...; * for all.
replication.quota.window.num  How many windows the rates of replication are measured over.
replication.quota.window.size.seconds  The length of such a window.
replica.lag.time.max.ms  How long a follower may lag before it leaves the in-sync replicas.
replica.socket.timeout.ms  How long a follower waits for an answer of its leader.
replica.fetch.max.bytes  How much of a partition a follower asks for at once.
replica.fetch.wait.max.ms  How long a leader may wait before it answers a follower.
replica.fetch.backoff.ms  How long a follower waits after a failure.
replica.fetch.min.bytes  How much a follower waits for.
replica.fetch.response.max.bytes  How much a follower asks for at once, over all partitions.
num.replica.fetchers  How many fetchers a follower has for each leader.
replica.high.watermark.checkpoint.interval.ms  How often high watermarks are written to disk.
auto.leader.rebalance.enable  Whether leadership moves back to preferred leaders automatically.
leader.imbalance.check.interval.seconds  How often the controller checks whether preferred leaders lead.
unclean.leader.election.interval.ms  How often the controller checks for partitions without an eligible leader.
controlled.shutdown.enable  Whether a broker hands over its leaderships before it stops.
controlled.shutdown.retry.backoff.ms  How long a stopping broker waits before it asks the controller again.
broker.session.timeout.ms  How long a broker may send no heartbeat before the controller fences it.
broker.heartbeat.interval.ms  How often a broker sends a heartbeat.
initial.broker.registration.timeout.ms  How long a starting broker tries to register.
controller.socket.timeout.ms  How long a broker waits for an answer of the controller.
heirlog.accept.older.metadata  Follow older metadata; only --accept-older-metadata sets it, for one start.
heirlog.broker.disconnect.grace.ms  How soon a broker is fenced after its connection closed; -1: at its session's end.
heirlog.discarded.enable  Whether a follower keeps a copy of records that it must truncate.
heirlog.discarded.max.bytes  How many bytes copies of truncated records may take.
heirlog.discarded.min.free.bytes  How many bytes of the disk copies of truncated records must leave free.
heirlog.discarded.retention.ms  How long copies of truncated records are kept.
heirlog.metrics.listener  Where the node serves its metrics, as host:port.
metadata.log.segment.bytes  The size at which a new segment of the metadata log begins.
metadata.log.segment.ms  The age at which a new segment of the metadata log begins.
metadata.max.retention.bytes  How many bytes of the metadata log and its snapshots are kept; -1: no limit.
metadata.max.retention.ms  How long a snapshot of the metadata is kept once a newer one exists; -1: no limit.
metadata.log.max.record.bytes.between.snapshots  After how many bytes of records a snapshot is written.
metadata.log.max.snapshot.interval.ms  The longest time between two snapshots of the metadata.
metadata.max.idle.interval.ms  How long the controller may write no metadata record; then it writes an empty one.
unstable.api.versions.enable  Whether the node serves API versions that Apache Kafka calls unstable: InitProducerId 6.
offsets.topic.num.partitions  How many partitions the topic of committed offsets gets.
offsets.topic.replication.factor  How many replicas the partitions of the topic of committed offsets get.
offsets.topic.segment.bytes  The segment size of the topic of committed offsets.
offsets.topic.compression.codec  The codec of the topic of committed offsets, by its number.
transaction.state.log.num.partitions  How many partitions the topic of transactional ids gets.
transaction.state.log.replication.factor  How many replicas the partitions of the topic of transactional ids get.
transaction.state.log.min.isr  The min.insync.replicas of the topic of transactional ids.
transaction.state.log.segment.bytes  The segment size of the topic of transactional ids.
transaction.max.timeout.ms  The longest transaction.timeout.ms that a producer may ask for.
transactional.id.expiration.ms  How long a transactional id is kept after its last change.
transaction.abort.timed.out.transaction.cleanup.interval.ms  How often a coordinator aborts transactions that timed out.
transaction.remove.expired.transaction.cleanup.interval.ms  How often a coordinator deletes expired transactional ids.
transaction.partition.verification.enable  Whether a leader asks the coordinator before a transaction begins.
transaction.two.phase.commit.enable  Whether a producer may begin transactions without a time limit (KIP-939).
add.partitions.to.txn.retry.backoff.ms  How long a leader waits until it asks the coordinator again.
add.partitions.to.txn.retry.backoff.max.ms  How long a leader asks again while the transaction before is not complete.
offsets.retention.minutes  How long committed offsets are kept after their group became empty.
offsets.retention.check.interval.ms  How often a coordinator checks for expired offsets.
offsets.commit.timeout.ms  How long a commit waits for its replicas.
offset.metadata.max.bytes  The largest metadata string of a committed offset, in bytes.
group.initial.rebalance.delay.ms  How long a new group waits for more members before its first rebalance.
group.min.session.timeout.ms  The shortest session that a member may ask for.
group.max.session.timeout.ms  The longest session that a member may ask for.
group.max.size  How many members a group has at most.
connections.max.reauth.ms  How long a client with SASL stays authenticated; 0: as long as its connection.
connection.failed.authentication.delay.ms  How long the answer to a failed SASL attempt is held back.
heirlog.authentication.timeout.ms  How long a client may take for its TLS handshake and SASL.
delegation.token.expiry.check.interval.ms  How often the active controller removes tokens that have ended.
delegation.token.expiry.time.ms  How long a delegation token lives if it is not renewed.
delegation.token.max.lifetime.ms  How long a delegation token lives with all renewals.
delegation.token.secret.key  Makes the secrets of delegation tokens; the same on every node. Without it there are none.
heirlog.sasl.oauthbearer.allowed.urls  http URLs that sasl.oauthbearer configurations may name; https needs no entry.
sasl.enabled.mechanisms  The SASL mechanisms of clients: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER.
sasl.login.callback.handler.class  Kafka's class that gets this node's token; only with listener and mechanism.
sasl.oauthbearer.client.credentials.client.id  By which this node gets its token from the token endpoint.
sasl.oauthbearer.client.credentials.client.secret  The secret of that client id.
sasl.oauthbearer.clock.skew.seconds  By how much the clocks of this node and of the issuer of tokens may differ.
sasl.oauthbearer.expected.audience  A token is for one of these; without it, tokens with an audience are refused.
sasl.oauthbearer.expected.issuer  The issuer that a token must name; without it, any.
sasl.oauthbearer.jwks.endpoint.refresh.ms  How often the keys that sign tokens are fetched.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  The longest wait after keys could not be fetched.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms  The first wait after keys could not be fetched; it doubles.
sasl.oauthbearer.jwks.endpoint.url  Where the keys are that sign tokens: https, or a file (file:///...).
sasl.oauthbearer.scope  The scope that this node asks for in its token.
sasl.oauthbearer.scope.claim.name  The claim with the scope of a token.
sasl.oauthbearer.sub.claim.name  The claim with the name of the client.
sasl.oauthbearer.token.endpoint.url  Where this node gets its token: https, or a file (file:///...).
sasl.server.callback.handler.class  Kafka's class that judges tokens; only with listener and mechanism.
sasl.jaas.config  The users of PLAIN, and how this node logs in to others; only with listener and mechanism in its name.
sasl.mechanism.controller.protocol  How this node logs in to the controllers.
sasl.mechanism.inter.broker.protocol  How this node logs in to other brokers.
sasl.server.max.receive.size  The largest request of a client that has not authenticated, in bytes.
ssl.allow.dn.changes  Whether a dynamic key store may have a certificate with another subject.
ssl.allow.san.changes  Whether a dynamic key store may have a certificate that lacks a name or address of the old one.
ssl.cipher.suites  The cipher suites of TLS, by their standard names; empty: OpenSSL's choice.
ssl.client.auth  Whether clients show a certificate: none, requested or required.
ssl.enabled.protocols  The versions of TLS: TLSv1.2, TLSv1.3.
ssl.endpoint.identification.algorithm  https checks the names in certificates of other nodes; empty does not.
ssl.key.password  The password of the private key.
ssl.keystore.certificate.chain  The certificate of the node and those above it, as PEM.
ssl.keystore.key  The private key of the node, as PEM.
ssl.keystore.location  The file with the private key and the certificate of the node.
ssl.keystore.password  The password of that file.
ssl.keystore.type  The format of that file: JKS, PKCS12 or PEM.
ssl.principal.mapping.rules  How the subject of a client's certificate becomes its name.
ssl.truststore.certificates  The certificates of trusted authorities, as PEM.
ssl.truststore.location  The file with the certificates of trusted authorities.
ssl.truststore.password  The password of that file.
ssl.truststore.type  The format of that file: JKS, PKCS12 or PEM.
group.coordinator.rebalance.protocols  The protocols of groups: classic, and consumer; others have no effect.
consumer.heartbeat.interval.ms  How often a member of this consumer group sends a heartbeat.
consumer.session.timeout.ms  How long a member of this consumer group may be silent.
group.consumer.assignors  The assignors of the coordinator; the first one assigns where no member prefers another.
group.consumer.heartbeat.interval.ms  How often a member of a consumer group sends a heartbeat.
group.consumer.min.heartbeat.interval.ms  The shortest heartbeat interval that a group may have.
group.consumer.max.heartbeat.interval.ms  The longest heartbeat interval that a group may have.
group.consumer.session.timeout.ms  How long a member of a consumer group may be silent.
group.consumer.min.session.timeout.ms  The shortest session that a group may have.
group.consumer.max.session.timeout.ms  The longest session that a group may have.
group.consumer.max.size  How many members a consumer group has at most.
group.consumer.migration.policy  Whether members change a group from the classic to the consumer protocol, or back.
group.share.assignors  The assignor of share groups.
group.share.heartbeat.interval.ms  How often a member of a share group sends a heartbeat.
group.share.min.heartbeat.interval.ms  The shortest heartbeat interval that a share group may have.
group.share.max.heartbeat.interval.ms  The longest heartbeat interval that a share group may have.
group.share.session.timeout.ms  How long a member of a share group may be silent.
group.share.min.session.timeout.ms  The shortest session that a share group may have.
group.share.max.session.timeout.ms  The longest session that a share group may have.
group.share.max.size  How many members a share group has at most.
group.share.max.share.sessions  How many share sessions a broker has at most.
group.share.delivery.count.limit  How often a record is delivered to a share group before it is archived.
group.share.partition.max.record.locks  How many offsets of a share partition are acquired or unfinished at most.
group.share.record.lock.duration.ms  How long a record is locked for the member that acquired it.
group.share.min.record.lock.duration.ms  The shortest lock that a share group may have.
group.share.max.record.lock.duration.ms  The longest lock that a share group may have.
share.heartbeat.interval.ms  How often a member of this share group sends a heartbeat.
share.session.timeout.ms  How long a member of this share group may be silent.
share.auto.offset.reset  Where this share group begins in a partition that it has not read.
share.isolation.level  Whether this share group gets records of committed transactions only.
share.record.lock.duration.ms  How long a record is locked for the member of this share group that acquired it.
share.coordinator.snapshot.update.records.per.snapshot  How many updates a share partition gets before a snapshot.
share.coordinator.state.topic.compression.codec  The codec of the state of share groups, by its number.
share.coordinator.state.topic.num.partitions  How many partitions the topic of the state of share groups gets.
share.coordinator.state.topic.replication.factor  How many replicas the partitions of that topic get.
share.coordinator.state.topic.min.isr  The min.insync.replicas of that topic.
share.coordinator.state.topic.segment.bytes  The segment size of the topic of the state of share groups.
share.coordinator.write.timeout.ms  How long a change of the state of a share group waits for its replicas.
log.level  The lowest level of messages that the node logs.
authorizer.class.name  The authorizer; empty: every client may do everything.
super.users  Who may do everything, as User:name;User:name.
allow.everyone.if.no.acl.found  Whether every principal may access a resource that has no ACL.
"""

DOCS: Final[Mapping[str, str]] = dict(line.split(maxsplit=1) for line in _TEXTS.strip().splitlines())


def documentation(definition: ConfigKey) -> str:
    if definition.name in DOCS:
        return DOCS[definition.name]
    return WITHOUT_EFFECT if definition.lacking is None else f"{WITHOUT_EFFECT} {definition.lacking}."
