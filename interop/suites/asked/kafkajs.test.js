// What kafkajs's own tests ask of a broker, in our words: its package comes without them. SUITE_ADDRESS is a single
// broker, SUITE_RESULTS a file for what became of each test.
const { test, after } = require('node:test')
const assert = require('node:assert/strict')
const crypto = require('node:crypto')
const fs = require('node:fs')
const {
  Kafka,
  logLevel,
  CompressionTypes,
  ConfigResourceTypes,
  AssignerProtocol,
  PartitionAssigners,
} = require('kafkajs')

const PATIENCE_MS = 40_000
const outcomes = {}
const kafka = new Kafka({
  brokers: [process.env.SUITE_ADDRESS],
  clientId: 'suite',
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 20 },
})

const newName = () => `n-${crypto.randomUUID().slice(0, 13)}`
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

// One after another; whoever hangs has failed.
function asks(name, body) {
  test(name, { timeout: PATIENCE_MS }, async () => {
    outcomes[name] = 'failed'
    const opened = []
    const open = async (client) => {
      await client.connect()
      opened.push(client)
      return client
    }
    try {
      await body({
        admin: () => open(kafka.admin()),
        producer: (options) => open(kafka.producer(options)),
        consumer: (groupId, options) =>
          open(kafka.consumer({ groupId, maxWaitTimeInMs: 100, heartbeatInterval: 300, ...options })),
      })
      outcomes[name] = 'passed'
    } finally {
      await Promise.allSettled(opened.reverse().map((client) => client.disconnect()))
    }
  })
}

after(() => fs.writeFileSync(process.env.SUITE_RESULTS, JSON.stringify(outcomes)))

async function until(holds, what) {
  const end = Date.now() + PATIENCE_MS - 5000
  while (!(await holds())) {
    assert.ok(Date.now() < end, `in vain: ${what}`)
    await sleep(50)
  }
}

async function newTopic(admin, options = {}) {
  const topic = newName()
  assert.equal(
    await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 1, replicationFactor: 1, ...options }] }),
    true,
  )
  return topic
}

const numbered = (count, more = {}) =>
  Array.from({ length: count }, (_, at) => ({ key: `key-${at}`, value: `value-${at}`, ...more }))

// Runs the consumer and gathers its messages.
async function gathering(consumer, topics, options = {}) {
  const found = []
  for (const topic of [].concat(topics)) await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    ...options,
    eachMessage: async (one) => {
      found.push({ ...one.message, topic: one.topic, partition: one.partition })
    },
  })
  return found
}

const values = (messages) => messages.map(({ value }) => value && value.toString())

const joined = (consumer) => new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve))

async function rejected(promise, type) {
  await assert.rejects(promise, (error) => {
    const errors = [error, error.cause, error.originalError, ...(error.errors || [])].filter(Boolean)
    const types = errors.map((one) => one.type || one.name)
    assert.ok(types.includes(type), `${types} instead of ${type}`)
    return true
  })
}

// --- producer

for (const acks of [-1, 0, 1]) {
  asks(`acks ${acks}`, async ({ admin, producer, consumer }) => {
    const topic = await newTopic(await admin())
    const sent = await (await producer()).send({ topic, acks, messages: numbered(20) })
    if (acks) assert.deepEqual([sent[0].errorCode, sent[0].baseOffset], [0, '0'])
    const found = await gathering(await consumer(newName()), topic)
    await until(() => found.length === 20, 'every message')
    assert.deepEqual(values(found), numbered(20).map(({ value }) => value))
  })
}

for (const compression of ['None', 'GZIP']) {
  for (const idempotent of [false, true]) {
    asks(`compression ${compression}${idempotent ? ', idempotent' : ''}`, async ({ admin, producer, consumer }) => {
      const topic = await newTopic(await admin())
      const writer = await producer({ idempotent, maxInFlightRequests: 1 })
      for (let round = 0; round < 5; round += 1) {
        await writer.send({ topic, acks: -1, compression: CompressionTypes[compression], messages: numbered(30) })
      }
      const found = await gathering(await consumer(newName()), topic)
      await until(() => found.length === 150, 'every message')
      assert.deepEqual(
        found.map(({ offset }) => Number(offset)),
        Array.from({ length: 150 }, (_, at) => at),
      )
    })
  }
}

asks('messages at once, idempotent, keep their order and come once', async ({ admin, producer, consumer }) => {
  const topic = await newTopic(await admin(), { numPartitions: 3 })
  const writer = await producer({ idempotent: true })
  const sends = Array.from({ length: 40 }, (_, round) =>
    writer.send({ topic, acks: -1, messages: numbered(5).map((one) => ({ ...one, value: `${round}:${one.value}` })) }),
  )
  await Promise.all(sends)
  const found = await gathering(await consumer(newName()), topic)
  await until(() => found.length >= 200, 'every message')
  assert.equal(new Set(values(found)).size, 200)
})

asks('a batch for several topics', async ({ admin, producer, consumer }) => {
  const one = await admin()
  const topics = [await newTopic(one), await newTopic(one, { numPartitions: 2 })]
  const writer = await producer()
  const sent = await writer.sendBatch({ topicMessages: topics.map((topic) => ({ topic, messages: numbered(10) })) })
  assert.deepEqual(new Set(sent.map(({ topicName }) => topicName)), new Set(topics))
  const found = await gathering(await consumer(newName()), topics)
  await until(() => found.length === 20, 'every message')
})

asks('headers, of several values too', async ({ admin, producer, consumer }) => {
  const topic = await newTopic(await admin())
  const headers = { plain: 'text', bytes: Buffer.from([0, 255]), many: ['a', 'b'] }
  await (await producer()).send({ topic, messages: [{ value: 'x', headers }] })
  const found = await gathering(await consumer(newName()), topic)
  await until(() => found.length, 'the message')
  const told = found[0].headers
  assert.equal(told.plain.toString(), 'text')
  assert.deepEqual([...told.bytes], [0, 255])
  assert.deepEqual(told.many.map(String), ['a', 'b'])
})

asks('keys and values that are null or empty', async ({ admin, producer, consumer }) => {
  const topic = await newTopic(await admin())
  const messages = [{ key: null, value: null }, { key: 'k', value: null }, { key: '', value: '' }, { value: Buffer.alloc(0) }]
  await (await producer()).send({ topic, messages })
  const found = await gathering(await consumer(newName()), topic)
  await until(() => found.length === 4, 'every message')
  const shown = found.map(({ key, value }) => [key && key.toString(), value && value.toString()])
  assert.deepEqual(shown, [[null, null], ['k', null], ['', ''], [null, '']])
})

asks('timestamps are kept', async ({ admin, producer, consumer }) => {
  const topic = await newTopic(await admin())
  const timestamp = String(Date.now() - 100_000)
  await (await producer()).send({ topic, messages: [{ value: 'x', timestamp }] })
  const found = await gathering(await consumer(newName()), topic)
  await until(() => found.length, 'the message')
  assert.equal(found[0].timestamp, timestamp)
})

asks('a topic that is not there is made', async ({ producer, admin }) => {
  const topic = newName()
  await (await producer({ allowAutoTopicCreation: true })).send({ topic, messages: numbered(3) })
  const one = await admin()
  assert.ok((await one.listTopics()).includes(topic))
})

asks('a topic that is not there is refused where it may not be made', async ({ producer }) => {
  const writer = await producer({ allowAutoTopicCreation: false, retry: { retries: 1 } })
  await rejected(writer.send({ topic: newName(), messages: numbered(1) }), 'UNKNOWN_TOPIC_OR_PARTITION')
})

asks('a message beyond the limit of its topic', async ({ admin, producer }) => {
  const topic = await newTopic(await admin(), { configEntries: [{ name: 'max.message.bytes', value: '1000' }] })
  const writer = await producer({ retry: { retries: 0 } })
  await rejected(writer.send({ topic, messages: [{ value: 'x'.repeat(2000) }] }), 'MESSAGE_TOO_LARGE')
  await writer.send({ topic, messages: [{ value: 'x'.repeat(500) }] })
})

// --- consumer

asks('batches, resolved one by one', async ({ admin, producer, consumer }) => {
  const topic = await newTopic(await admin())
  await (await producer()).send({ topic, messages: numbered(50) })
  const reader = await consumer(newName(), { maxBytesPerPartition: 400 })
  const found = []
  await reader.subscribe({ topics: [topic], fromBeginning: true })
  await reader.run({
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, heartbeat, commitOffsetsIfNecessary }) => {
      for (const message of batch.messages) {
        found.push(message.value.toString())
        resolveOffset(message.offset)
        await heartbeat()
      }
      await commitOffsetsIfNecessary()
      assert.equal(batch.highWatermark, '50')
    },
  })
  await until(() => found.length === 50, 'every message')
  assert.deepEqual(found, numbered(50).map(({ value }) => value))
})

asks('what was committed is where the next one goes on', async ({ admin, producer, consumer }) => {
  const one = await admin()
  const topic = await newTopic(one)
  const group = newName()
  const writer = await producer()
  await writer.send({ topic, messages: numbered(10) })
  const first = await consumer(group)
  const found = await gathering(first, topic, { autoCommitThreshold: 1 })
  await until(() => found.length === 10, 'the first messages')
  await first.disconnect()
  await writer.send({ topic, messages: numbered(3, { value: 'later' }) })
  const rest = await gathering(await consumer(group), topic)
  await until(() => rest.length >= 3, 'the later messages')
  assert.deepEqual(values(rest), ['later', 'later', 'later'])
})

asks('offsets are committed by hand, with metadata', async ({ admin, producer, consumer }) => {
  const one = await admin()
  const topic = await newTopic(one)
  const group = newName()
  await (await producer()).send({ topic, messages: numbered(5) })
  const reader = await consumer(group)
  const found = await gathering(reader, topic, { autoCommit: false })
  await until(() => found.length === 5, 'every message')
  await reader.commitOffsets([{ topic, partition: 0, offset: '3', metadata: 'a note' }])
  const [{ partitions }] = await one.fetchOffsets({ groupId: group, topics: [topic] })
  assert.deepEqual([partitions[0].offset, partitions[0].metadata], ['3', 'a note'])
})

asks('seek to an offset, to the beginning and past the end', async ({ admin, producer, consumer }) => {
  const topic = await newTopic(await admin())
  await (await producer()).send({ topic, messages: numbered(10) })
  const reader = await consumer(newName())
  const found = await gathering(reader, topic)
  await until(() => found.length === 10, 'every message')
  for (const [offset, count] of [['7', 3], ['0', 10], ['99', 10]]) {
    found.length = 0
    reader.seek({ topic, partition: 0, offset })
    // past the end is out of range, and starts where the subscription said
    await until(() => found.length >= count, `messages from ${offset}`)
    assert.equal(found[0].offset, offset === '99' ? '0' : offset)
  }
})

asks('pause and resume', async ({ admin, producer, consumer }) => {
  const one = await admin()
  const [paused, read] = [await newTopic(one), await newTopic(one)]
  const reader = await consumer(newName())
  const found = await gathering(reader, [paused, read])
  const writer = await producer()
  await writer.send({ topic: paused, messages: numbered(1) })
  await until(() => found.length === 1, 'a first message')
  reader.pause([{ topic: paused }])
  for (const topic of [paused, read]) await writer.send({ topic, messages: numbered(5) })
  await until(() => found.length === 6, 'messages of the other topic')
  await sleep(300)
  assert.equal(found.length, 6)
  reader.resume([{ topic: paused }])
  await until(() => found.length === 11, 'messages after resume')
})

asks('a pattern', async ({ admin, producer, consumer }) => {
  const one = await admin()
  const prefix = newName()
  await one.createTopics({ waitForLeaders: true, topics: [{ topic: `${prefix}-a` }, { topic: `${prefix}-b` }, { topic: newName() }] })
  const writer = await producer()
  for (const letter of ['a', 'b']) await writer.send({ topic: `${prefix}-${letter}`, messages: numbered(2) })
  const found = await gathering(await consumer(newName()), new RegExp(`^${prefix}-.*`))
  await until(() => found.length === 4, 'messages of both topics')
})

asks('two members share, and one takes over', async ({ admin, producer, consumer }) => {
  const topic = await newTopic(await admin(), { numPartitions: 4 })
  const group = newName()
  const [one, other] = [await consumer(group), await consumer(group)]
  const found = [await gathering(one, topic, { partitionsConsumedConcurrently: 2 }), []]
  found[1] = await gathering(other, topic)
  const shared = async () => {
    const { members } = await one.describeGroup()
    const parts = members.map(({ memberAssignment }) => AssignerProtocol.MemberAssignment.decode(memberAssignment))
    return parts.length === 2 && parts.every((part) => part && part.assignment[topic].length === 2)
  }
  await until(shared, 'two partitions each')
  const writer = await producer()
  const messages = () => [0, 1, 2, 3].map((partition) => ({ partition, value: 'x' }))
  await writer.send({ topic, messages: messages() })
  await until(() => found[0].length + found[1].length === 4 && found[0].length === 2, 'two messages each')
  await other.disconnect()
  await writer.send({ topic, messages: messages() })
  await until(() => found[0].length === 6, 'all the messages')
})

asks('a member that says nothing is out', async ({ admin, producer, consumer }) => {
  const one = await admin()
  const topic = await newTopic(one)
  const group = newName()
  const members = async () => (await one.describeGroups([group])).groups[0].members.length
  const reader = await consumer(group, { sessionTimeout: 1000, heartbeatInterval: 300 })
  await reader.subscribe({ topics: [topic], fromBeginning: true })
  let release
  const busy = new Promise((resolve) => (release = resolve))
  // heartbeats are sent between messages
  await reader.run({ eachMessage: () => busy })
  await until(async () => (await members()) === 1, 'the member')
  await (await producer()).send({ topic, messages: numbered(1) })
  await until(async () => (await members()) === 0, 'nobody')
  release()
})

asks('partitions that come later are found', async ({ admin, producer, consumer }) => {
  const one = await admin()
  const topic = await newTopic(one)
  const reader = await consumer(newName(), { metadataMaxAge: 500 })
  const found = await gathering(reader, topic)
  await one.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
  const writer = await producer({ metadataMaxAge: 100 })
  await until(async () => {
    const { topics } = await one.fetchTopicMetadata({ topics: [topic] })
    return topics[0].partitions.length === 3
  }, 'three partitions')
  await sleep(200)
  await writer.send({ topic, messages: [0, 1, 2].map((partition) => ({ partition, value: `p${partition}` })) })
  await until(() => found.length === 3, 'messages of every partition')
})

asks('an assigner of its own and its user data', async ({ admin, producer, consumer }) => {
  const topic = await newTopic(await admin(), { numPartitions: 2 })
  const custom = ({ cluster }) => ({
    name: 'everything-to-the-first',
    version: 1,
    assign: async ({ members, topics }) => {
      const all = Object.fromEntries(topics.map((one) => [one, cluster.findTopicPartitionMetadata(one).map((p) => p.partitionId)]))
      return members.map(({ memberId }, at) => ({
        memberId,
        memberAssignment: AssignerProtocol.MemberAssignment.encode({ version: 1, assignment: at ? {} : all, userData: Buffer.from('u') }),
      }))
    },
    protocol: ({ topics }) => ({
      name: 'everything-to-the-first',
      metadata: AssignerProtocol.MemberMetadata.encode({ version: 1, topics, userData: Buffer.from('mine') }),
    }),
  })
  const reader = await consumer(newName(), { partitionAssigners: [custom, PartitionAssigners.roundRobin] })
  const told = joined(reader)
  const found = await gathering(reader, topic)
  assert.equal((await told).payload.groupProtocol, 'everything-to-the-first')
  await (await producer()).send({ topic, messages: [0, 1].map((partition) => ({ partition, value: 'x' })) })
  await until(() => found.length === 2, 'messages of both partitions')
  const { members } = await reader.describeGroup()
  assert.equal(AssignerProtocol.MemberMetadata.decode(members[0].memberMetadata).userData.toString(), 'mine')
})

asks('read committed reads what is not transactional', async ({ admin, producer, consumer }) => {
  const topic = await newTopic(await admin())
  await (await producer()).send({ topic, messages: numbered(10) })
  for (const readUncommitted of [false, true]) {
    const found = await gathering(await consumer(newName(), { readUncommitted }), topic)
    await until(() => found.length === 10, 'every message')
  }
})

asks('transactions are read once committed', async ({ admin, producer, consumer }) => {
  const topic = await newTopic(await admin())
  const writer = await producer({ transactionalId: newName(), maxInFlightRequests: 1, idempotent: true })
  for (const [value, commit] of [['committed', true], ['aborted', false], ['later', true]]) {
    const transaction = await writer.transaction()
    await transaction.send({ topic, messages: [{ value, partition: 0 }] })
    await (commit ? transaction.commit() : transaction.abort())
  }
  const found = await gathering(await consumer(newName()), topic)
  await until(() => found.length === 2, 'what was committed')
  assert.deepEqual(values(found), ['committed', 'later'])
})

asks('offsets are committed with a transaction or not at all', async ({ admin, producer }) => {
  const one = await admin()
  const topic = await newTopic(one)
  const group = newName()
  const writer = await producer({ transactionalId: newName(), maxInFlightRequests: 1, idempotent: true })
  for (const [offset, commit] of [['1', true], ['2', false]]) {
    const transaction = await writer.transaction()
    const topics = [{ topic, partitions: [{ partition: 0, offset }] }]
    await transaction.sendOffsets({ consumerGroupId: group, topics })
    await (commit ? transaction.commit() : transaction.abort())
  }
  // the marker may be on its way
  await until(async () => {
    const [{ partitions }] = await one.fetchOffsets({ groupId: group, topics: [topic] })
    return partitions.find(({ partition }) => partition === 0).offset === '1'
  }, 'the committed offset')
})

asks('stop and run again', async ({ admin, producer, consumer }) => {
  const topic = await newTopic(await admin())
  const writer = await producer()
  const reader = await consumer(newName())
  const found = await gathering(reader, topic)
  await writer.send({ topic, messages: numbered(2) })
  await until(() => found.length === 2, 'the first messages')
  await reader.stop()
  await writer.send({ topic, messages: numbered(2) })
  const rest = await gathering(reader, topic)
  await until(() => rest.length === 2, 'the other messages')
})

// --- admin

asks('topics are made with partitions, replicas and configurations', async ({ admin }) => {
  const one = await admin()
  const topic = await newTopic(one, { numPartitions: 3, configEntries: [{ name: 'cleanup.policy', value: 'compact' }] })
  const { topics } = await one.fetchTopicMetadata({ topics: [topic] })
  assert.deepEqual(topics[0].partitions.map(({ partitionId }) => partitionId).sort(), [0, 1, 2])
  assert.deepEqual(topics[0].partitions[0].isr, topics[0].partitions[0].replicas)
  // one that is there is not made, and that is no error
  assert.equal(await one.createTopics({ topics: [{ topic }] }), false)
})

asks('topics with an assignment of replicas', async ({ admin }) => {
  const one = await admin()
  const { brokers } = await one.describeCluster()
  const replicas = [brokers[0].nodeId]
  const replicaAssignment = [0, 1].map((partition) => ({ partition, replicas }))
  const topic = await newTopic(one, { numPartitions: -1, replicationFactor: -1, replicaAssignment })
  const { topics } = await one.fetchTopicMetadata({ topics: [topic] })
  assert.deepEqual(topics[0].partitions.map((partition) => partition.replicas), [replicas, replicas])
})

asks('topics that cannot be made', async ({ admin }) => {
  const one = await admin()
  const create = (options) => one.createTopics({ topics: [{ topic: newName(), ...options }] })
  await rejected(create({ topic: '123,abc' }), 'INVALID_TOPIC_EXCEPTION')
  await rejected(create({ replicationFactor: 9 }), 'INVALID_REPLICATION_FACTOR')
  await rejected(create({ numPartitions: 0 }), 'INVALID_PARTITIONS')
  await rejected(create({ configEntries: [{ name: 'no.such', value: '1' }] }), 'INVALID_CONFIG')
  const topic = newName()
  assert.equal(await one.createTopics({ validateOnly: true, waitForLeaders: false, topics: [{ topic }] }), true)
  assert.ok(!(await one.listTopics()).includes(topic))
})

asks('topics are deleted', async ({ admin }) => {
  const one = await admin()
  const topic = await newTopic(one)
  await one.deleteTopics({ topics: [topic] })
  await until(async () => !(await one.listTopics()).includes(topic), 'the topic is gone')
  await rejected(one.deleteTopics({ topics: [topic], timeout: 1000 }), 'UNKNOWN_TOPIC_OR_PARTITION')
})

asks('metadata of a topic that is not there', async ({ admin }) => {
  const one = await admin()
  await rejected(one.fetchTopicMetadata({ topics: [newName()] }), 'UNKNOWN_TOPIC_OR_PARTITION')
})

asks('partitions are added, never removed', async ({ admin }) => {
  const one = await admin()
  const topic = await newTopic(one)
  const [broker] = (await one.describeCluster()).brokers
  await one.createPartitions({ validateOnly: true, topicPartitions: [{ topic, count: 2 }] })
  await one.createPartitions({ topicPartitions: [{ topic, count: 3, assignments: [[broker.nodeId], [broker.nodeId]] }] })
  await rejected(one.createPartitions({ topicPartitions: [{ topic, count: 2 }] }), 'INVALID_PARTITIONS')
  const { topics } = await one.fetchTopicMetadata({ topics: [topic] })
  assert.equal(topics[0].partitions.length, 3)
})

asks('offsets of a topic: low, high, by time', async ({ admin, producer }) => {
  const one = await admin()
  const topic = await newTopic(one, { numPartitions: 2 })
  const now = Date.now()
  const messages = Array.from({ length: 5 }, (_, at) => ({ partition: 0, value: 'x', timestamp: String(now - 5000 + at * 1000) }))
  await (await producer()).send({ topic, messages })
  const offsets = (await one.fetchTopicOffsets(topic)).sort((a, b) => a.partition - b.partition)
  assert.deepEqual(offsets.map(({ low, high, offset }) => [low, high, offset]), [['0', '5', '5'], ['0', '0', '0']])
  const at = async (time) => (await one.fetchTopicOffsetsByTimestamp(topic, time)).find((p) => p.partition === 0).offset
  assert.equal(await at(now - 3500), '2')
  // nothing is that late: the end
  assert.equal(await at(now + 100_000), '5')
})

asks('records are deleted up to an offset', async ({ admin, producer, consumer }) => {
  const one = await admin()
  const topic = await newTopic(one)
  await (await producer()).send({ topic, messages: numbered(10) })
  assert.equal((await one.fetchTopicOffsets(topic))[0].high, '10')
  await one.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '7' }] })
  assert.equal((await one.fetchTopicOffsets(topic))[0].low, '7')
  const found = await gathering(await consumer(newName()), topic)
  await until(() => found.length === 3, 'what is left')
  await one.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '-1' }] })
  assert.equal((await one.fetchTopicOffsets(topic))[0].low, '10')
  const beyond = one.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '11' }] })
  await rejected(beyond, 'KafkaJSDeleteTopicRecordsError')
})

asks('offsets of a group are set, reset and told', async ({ admin, producer }) => {
  const one = await admin()
  const topic = await newTopic(one, { numPartitions: 2 })
  const groupId = newName()
  await (await producer()).send({ topic, messages: [0, 0, 1].map((partition) => ({ partition, value: 'x' })) })
  const told = async (options = {}) => {
    const [found] = await one.fetchOffsets({ groupId, topics: [topic], ...options })
    return found.partitions.sort((a, b) => a.partition - b.partition).map(({ offset }) => offset)
  }
  assert.deepEqual(await told(), ['-1', '-1'])
  await one.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '1' }, { partition: 1, offset: '0' }] })
  assert.deepEqual(await told(), ['1', '0'])
  await one.resetOffsets({ groupId, topic })
  assert.deepEqual(await told({ resolveOffsets: true }), ['2', '1'])
  await one.resetOffsets({ groupId, topic, earliest: true })
  assert.deepEqual(await told({ resolveOffsets: true }), ['0', '0'])
})

asks('offsets of a running group cannot be set', async ({ admin, consumer }) => {
  const one = await admin()
  const topic = await newTopic(one)
  const groupId = newName()
  const reader = await consumer(groupId)
  const first = joined(reader)
  await gathering(reader, topic)
  await first
  const set = one.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '0' }] })
  await rejected(set, 'KafkaJSNonRetriableError')
})

asks('groups are listed, described and deleted', async ({ admin, consumer }) => {
  const one = await admin()
  const topic = await newTopic(one)
  const groupId = newName()
  const reader = await consumer(groupId)
  const first = joined(reader)
  await gathering(reader, topic)
  await first
  const listed = (await one.listGroups()).groups.find((group) => group.groupId === groupId)
  assert.equal(listed.protocolType, 'consumer')
  const described = async () => (await one.describeGroups([groupId])).groups[0]
  const group = await described()
  assert.deepEqual([group.state, group.protocol, group.members.length], ['Stable', 'RoundRobinAssigner', 1])
  assert.equal(group.members[0].clientId, 'suite')
  await rejected(one.deleteGroups([groupId]), 'KafkaJSDeleteGroupsError')
  await reader.disconnect()
  await until(async () => (await described()).state === 'Empty', 'an empty group')
  assert.deepEqual((await one.deleteGroups([groupId])).map(({ errorCode }) => errorCode), [0])
  assert.equal((await described()).state, 'Dead')
})

asks('configurations of topics and brokers are told', async ({ admin }) => {
  const one = await admin()
  const topic = await newTopic(one, { configEntries: [{ name: 'retention.ms', value: '12345' }] })
  const [broker] = (await one.describeCluster()).brokers
  const { resources } = await one.describeConfigs({
    includeSynonyms: true,
    resources: [
      { type: ConfigResourceTypes.TOPIC, name: topic, configNames: ['retention.ms', 'cleanup.policy'] },
      { type: ConfigResourceTypes.BROKER, name: String(broker.nodeId) },
    ],
  })
  const entries = Object.fromEntries(resources[0].configEntries.map((entry) => [entry.configName, entry]))
  assert.deepEqual(Object.keys(entries).sort(), ['cleanup.policy', 'retention.ms'])
  assert.deepEqual([entries['retention.ms'].configValue, entries['retention.ms'].isDefault], ['12345', false])
  assert.ok(resources[1].configEntries.length > 100)
})

asks('configurations of a topic are changed', async ({ admin }) => {
  const one = await admin()
  const topic = await newTopic(one)
  const resource = (value) => ({ type: ConfigResourceTypes.TOPIC, name: topic, configEntries: [{ name: 'cleanup.policy', value }] })
  const policy = async () => {
    const asked = [{ type: ConfigResourceTypes.TOPIC, name: topic, configNames: ['cleanup.policy'] }]
    return (await one.describeConfigs({ includeSynonyms: false, resources: asked })).resources[0].configEntries[0].configValue
  }
  await one.alterConfigs({ validateOnly: true, resources: [resource('compact')] })
  assert.equal(await policy(), 'delete')
  await one.alterConfigs({ validateOnly: false, resources: [resource('compact')] })
  await until(async () => (await policy()) === 'compact', 'the new policy')
  await rejected(one.alterConfigs({ validateOnly: false, resources: [resource('no such')] }), 'INVALID_CONFIG')
})

asks('the cluster: brokers, controller, id', async ({ admin }) => {
  const one = await admin()
  const { brokers, controller, clusterId } = await one.describeCluster()
  const address = brokers.map(({ host, port }) => `${host}:${port}`)
  assert.deepEqual([address, controller, clusterId.length], [[process.env.SUITE_ADDRESS], brokers[0].nodeId, 22])
})

asks('replicas are moved, and what moves is told', async ({ admin }) => {
  const one = await admin()
  const topic = await newTopic(one)
  const [broker] = (await one.describeCluster()).brokers
  await one.alterPartitionReassignments({
    topics: [{ topic, partitionAssignment: [{ partition: 0, replicas: [broker.nodeId] }] }],
  })
  const { topics } = await one.listPartitionReassignments({ topics: [{ topic, partitions: [0] }] })
  assert.deepEqual(topics, [])
  const nowhere = { topic, partitionAssignment: [{ partition: 0, replicas: [99] }] }
  await rejected(one.alterPartitionReassignments({ topics: [nowhere] }), 'INVALID_REPLICA_ASSIGNMENT')
})
