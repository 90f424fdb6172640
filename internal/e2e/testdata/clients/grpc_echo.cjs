// Calls the service of grpc_echo.py, and prints what its client prints.
const grpc = require('@grpc/grpc-js')

const same = x => x
const method = name => ['/test.Echo/' + name, same, same]

async function all (call) {
  const messages = []
  for await (const m of call) messages.push(m.toString())
  return messages.join(' ')
}

const send = call => { for (const m of ['a', 'b']) call.write(Buffer.from(m)); call.end() }

async function main (target) {
  const client = new grpc.Client(target, grpc.credentials.createSsl())
  const a = Buffer.from('a')
  const deadline = () => ({ deadline: Date.now() + 30000 })
  await new Promise((resolve, reject) => {
    let answer
    client.makeUnaryRequest(...method('Unary'), a, deadline(), (err, value) => err ? reject(err) : (answer = value))
      .on('status', status => { console.log('unary', answer.toString(), status.metadata.get('x-sum')[0]); resolve() })
  })
  console.log('out', await all(client.makeServerStreamRequest(...method('Out'), a, deadline())))
  await new Promise((resolve, reject) => send(client.makeClientStreamRequest(...method('In'), deadline(), (err, value) => {
    if (err) return reject(err)
    console.log('in', value.toString())
    resolve()
  })))
  const both = client.makeBidiStreamRequest(...method('Both'), deadline())
  send(both)
  console.log('both', await all(both))
  for (let i = 0; i < 8; i++) {
    await new Promise(resolve => client.makeUnaryRequest(...method('Error'), a, deadline(), err => {
      console.log('error', err?.code, err?.details)
      resolve()
    }))
  }
  client.close()
}

// Without a target the question was whether this would work.
if (process.argv[2]) main(process.argv[2])
