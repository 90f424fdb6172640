// Verifies requests with the package web-bot-auth, as Cloudflare does, and prints how many were valid. Each line of
// the standard input is a request: {"method": "GET", "url": "http://…", "headers": {"signature": "…", …}}. The argument is the
// public key as a JWK.
import { createInterface } from 'node:readline'
import { webcrypto } from 'node:crypto'
import { createRequire } from 'node:module'

globalThis.crypto ??= webcrypto
const require = createRequire(import.meta.url)
const { verify } = require('web-bot-auth')
const { verifierFromJWK } = require('web-bot-auth/crypto')

const jwk = JSON.parse(process.argv[2])
const check = await verifierFromJWK(jwk)
let valid = 0, nonces = new Set()
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line)
  try {
    await verify(request, (data, signature, params) => {
      if (params.keyid !== jwk.kid) throw new Error('keyid ' + params.keyid)
      nonces.add(params.nonce)
      return check(data, signature, params)
    })
    valid++
  } catch (error) {
    console.log(request.method, request.url, String(error))
  }
}
console.log(`${valid} valid, ${nonces.size} nonces`)
