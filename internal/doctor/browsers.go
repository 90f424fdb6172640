package doctor

import (
	"bytes"
	"context"
	"html"
	"os"
	"os/exec"
	"slices"
)

const windowless = "Chromium sends none from a command line: identify it by address, with crawlers[].sources, or run it in a gate that sends the login: robotsgate run -- sh -c 'chromium --proxy-server=$http_proxy'"

// nssTrust has the line that makes Chromium trust the CA, and what helps if the store has an older CA.
var nssTrust = []string{
	"mkdir -p ~/.pki/nssdb && certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n robotsgate -i {ca}",
	"if it fails with SEC_ERROR_ADDING_CERT, remove an older CA of this name first: certutil -d sql:$HOME/.pki/nssdb -D -n robotsgate",
}

// browsers are browsers, and the libraries that run one. Doctor checks Chromium, with which a page
// takes about a second. The others take their settings from a program or a profile.
var browsers = []program{
	{name: "chromium", also: []string{"chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}, browser: true,
		fault: "/crawler", // it saves /ca.pem as a file
		get:   []string{"chromium", "--headless", "--dump-dom", "{url}"},
		trust: nssTrust,
		proxy: []string{"chromium --proxy-server=http://{address}", "or the variables http_proxy and https_proxy, where the desktop has no proxy settings"},
		login: windowless},
	{name: "firefox", settings: []string{
		"mkdir -p profile && certutil -d sql:profile -A -t C,, -n robotsgate -i {ca}",
		`echo 'user_pref("network.proxy.type", 2); user_pref("network.proxy.autoconfig_url", "http://{address}/proxy.pac");' > profile/user.js`,
		`firefox --headless --profile profile --screenshot "$PWD/page.png" https://example.com/`}},
	{name: "playwright", trust: nssTrust, settings: []string{
		`proxy: { server: "http://{address}", username: "USER", password: "PASSWORD" }, // a login only if the gate asks for one`}},
	{name: "puppeteer", trust: nssTrust, settings: []string{
		`args: ["--proxy-server=http://{address}"],`,
		`await page.authenticate({ username: "USER", password: "PASSWORD" }); // only if the gate asks for a login`}},
	{name: "selenium", trust: nssTrust, settings: []string{
		`options.add_argument("--proxy-server=http://{address}")`}},
}

// needs returns what a client needs that can't be checked.
func (e *diagnosis) needs(p program) finding {
	text := "is not tried: its settings are in a profile, which needs:"
	if p.trust != nil {
		text = "is not tried: its settings are in a program, and it trusts the CA if its browser does (doctor chromium):"
	}
	return finding{p.name, unknown, text, slices.Concat(e.get, e.expand(p.trust, ""), e.expand(p.settings, ""))}
}

// installed returns the command with the first of its names that is on this machine, or nil.
func installed(command, also []string) []string {
	for _, name := range append([]string{command[0]}, also...) {
		if _, err := exec.LookPath(name); err == nil {
			return append([]string{name}, command[1:]...)
		}
	}
	return nil
}

// pageText returns the text of a page in a browser if the page is plain text.
func pageText(out []byte) []byte {
	_, text, _ := bytes.Cut(out, []byte("<pre"))
	_, text, _ = bytes.Cut(text, []byte(">"))
	text, _, _ = bytes.Cut(text, []byte("</pre>"))
	return []byte(html.UnescapeString(string(text)))
}

// browse returns what a browser prints for a page, which is HTML. The browser's own files are in
// the folder temp, except its CAs.
func browse(ctx context.Context, p program, temp string, env []string, address string) ([]byte, error) {
	env = append(slices.Clone(env), "XDG_CONFIG_HOME="+temp, "XDG_CACHE_HOME="+temp, "TMPDIR="+temp)
	return run(ctx, temp, env, openPage(p, address))
}

// openPage returns the command with which a browser prints a page.
func openPage(p program, address string) []string {
	command := slices.Clone(p.get)
	command[len(command)-1] = address
	if os.Getuid() == 0 {
		command = slices.Insert(command, 1, "--no-sandbox") // Chromium refuses to run its sandbox as root
	}
	return command
}
