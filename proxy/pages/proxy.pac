{{/* Requests that no_proxy excludes, and those to the gate's own pages, are sent directly. Browsers
     remove the path of an https URL before they call this function. */ -}}
function FindProxyForURL(url, host) {
  if (host == "localhost" || host == "::1" || host == "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host) ||
      url.indexOf("http://{{.Address}}/") == 0 || url.indexOf("https://{{.Address}}/") == 0) return "DIRECT";
  return "{{.Route}}";
}
