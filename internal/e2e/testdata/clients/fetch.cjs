// Gets a URL with Node's own fetch, which reads the proxy from the environment
// since 22.21 and 24.5.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 21) || major === 23 || (major === 24 && minor < 5)) {
  console.error(`Node ${process.version} does not know NODE_USE_ENV_PROXY`)
  process.exit(1)
}

// Without a URL the question was whether this would work.
if (process.argv[2]) require('./print.cjs')(fetch, process.argv[2])
