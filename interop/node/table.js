// Keys and values into and out of partition 0 of a topic: `node table.js write|read BOOTSTRAP TOPIC`. Lines are
// `key TAB value`, without a TAB for a tombstone; what is read begins with its offset and a TAB.
const readline = require('node:readline')
const { Kafka, CompressionTypes, logLevel } = require('kafkajs')

const BATCH = 10
const [what, bootstrap, topic] = process.argv.slice(2)
const kafka = new Kafka({
  brokers: bootstrap.split(','),
  clientId: 'heirlog-interop',
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 40 },
})

function messageOf(line) {
  const [key, value] = line.split('\t')
  return { partition: 0, key, value: value === undefined ? null : value }
}

async function write() {
  const producer = kafka.producer()
  await producer.connect()
  const lines = []
  for await (const line of readline.createInterface({ input: process.stdin })) {
    lines.push(line)
  }
  for (let at = 0; at < lines.length; at += BATCH) {
    const messages = lines.slice(at, at + BATCH).map(messageOf)
    await producer.send({ topic, acks: -1, compression: CompressionTypes.GZIP, messages })
  }
  await producer.disconnect()
}

// kafkajs reads as a member of a group only
async function read() {
  const admin = kafka.admin()
  await admin.connect()
  const end = Number((await admin.fetchTopicOffsets(topic)).find((one) => one.partition === 0).high)
  await admin.disconnect()
  const consumer = kafka.consumer({ groupId: `table-${process.pid}`, maxWaitTimeInMs: 500 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer.run({
      eachMessage: async ({ message }) => {
        const value = message.value === null ? '' : `\t${message.value}`
        console.log(`${message.offset}\t${message.key}${value}`)
        if (Number(message.offset) === end - 1) resolve()
      },
    })
  })
  await consumer.disconnect()
}

;(what === 'write' ? write() : read()).then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
