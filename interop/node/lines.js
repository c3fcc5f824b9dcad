// Lines into and out of a topic: `node lines.js produce|consume BOOTSTRAP TOPIC GROUP`. Consuming never ends.
const readline = require('node:readline')
const { Kafka, logLevel } = require('kafkajs')

const [what, bootstrap, topic, groupId] = process.argv.slice(2)
const kafka = new Kafka({
  brokers: bootstrap.split(','),
  clientId: 'heirlog-interop',
  logLevel: logLevel.NOTHING,
  connectionTimeout: 3000,
  requestTimeout: 10000,
  retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 40 },
})

async function produce() {
  const producer = kafka.producer()
  await producer.connect()
  for await (const line of readline.createInterface({ input: process.stdin })) {
    await producer.send({ topic, acks: -1, messages: [{ key: line, value: line }] })
  }
  await producer.disconnect()
}

async function consume() {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 1000, maxWaitTimeInMs: 500 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({ eachMessage: async ({ message }) => console.log(message.value.toString()) })
}

if (what === 'consume') {
  consume().catch((error) => {
    console.error(error)
    process.exit(1)
  })
} else {
  produce().then(
    () => process.exit(0),
    (error) => {
      console.error(error)
      process.exit(1)
    },
  )
}
