// Prints what a fetch gets of a URL.
module.exports = async function (fetch, url) {
  const response = await fetch(url)
  console.log('status', response.status)
  for (const [name, value] of response.headers) console.log(`${name}: ${value}`)
  console.log(await response.text())
}
