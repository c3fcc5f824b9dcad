// kafkajs against a running cluster: `node client.js BOOTSTRAP`. Produces uncompressed and with gzip (the codecs that
// it carries), idempotently too, and consumes what it wrote, in order, as a member of a group: it knows no other way.
// Any doubt ends it with exit code 1.
const { Kafka, CompressionTypes, logLevel } = require('kafkajs')

const RECORDS = 300
const PATIENCE_MS = 60000
const kafka = new Kafka({ brokers: process.argv[2].split(','), clientId: 'heirlog-interop', logLevel: logLevel.NOTHING })

const value = (topic, number) => `${topic}-${number}-${'abcdefgh'.repeat(number % 30)}`

async function create(topic) {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 3 }] })
  const offsets = await admin.fetchTopicOffsets(topic)
  if (offsets[0].high !== '0') throw new Error(`${topic} begins at ${offsets[0].high}`)
  await admin.disconnect()
}

async function produce(topic, compression, idempotent) {
  const producer = kafka.producer({ idempotent })
  await producer.connect()
  for (let first = 0; first < RECORDS; first += 50) {
    const messages = Array.from({ length: 50 }, (_, at) => ({ key: 'key', value: value(topic, first + at) }))
    await producer.send({ topic, acks: -1, compression, messages })
  }
  await producer.disconnect()
}

async function consume(topic) {
  const consumer = kafka.consumer({ groupId: `${topic}-group` })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  let number = 0
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`${topic}: ${number} of ${RECORDS} arrived`)), PATIENCE_MS).unref()
    consumer
      .run({
        eachMessage: async ({ message }) => {
          if (message.value.toString() !== value(topic, number)) reject(new Error(`${topic}: record ${number} is another`))
          number += 1
          if (number === RECORDS) resolve()
        },
      })
      .catch(reject)
  })
  await consumer.disconnect()
}

async function main() {
  const kinds = [
    ['node-none', CompressionTypes.None, false],
    ['node-gzip', CompressionTypes.GZIP, false],
    ['node-idempotent', CompressionTypes.GZIP, true],
  ]
  for (const [topic, compression, idempotent] of kinds) {
    await create(topic)
    await produce(topic, compression, idempotent)
    await consume(topic)
  }
  console.log('done')
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
