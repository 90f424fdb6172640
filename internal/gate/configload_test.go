package gate

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"robotsgate/internal/field"
	"robotsgate/policy"
)

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := ParseConfig("test.yaml", []byte(text), lookup)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestValues(t *testing.T) {
	c := parse(t, `
listen: ":9000"
mode: report
crawlers:
  - name: news
    sources: [10.0.0.0/8, "2001:db8::/32"]
    user_agents: ["*newsbot*"]
    product_tokens: [NewsBot, "2001"]
    deny_status: 451
  - {name: rest}
overrides:
  - hosts: ["*.Partner.Example.", bücher.example]
    paths: [/api/, "*.pdf$"]
    crawlers: [news]
    action: allow
    reason: contract
    expires: 2027-03-01
  - {hosts: ["*"], action: deny, reason: x, expires: 2027-03-01T18:00:00+02:00}
robots: {max_age: 1h30m, stale_for: 0s, max_bytes: 1MB, max_redirects: 0, user_agent: "Gate/1 (${WORD})"}
https: {passthrough: ["*.bank.example"]}
egress: {ports: [80, 443], proxy: "socks5://u:p@proxy.lan:1080"}
admin: {listen: "", hosts: [Gate.Example.]}
log: {level: debug, audit: "-"}
`)
	if c.Listen != ":9000" || c.Mode != policy.Report || c.Admin.Listen != "" || c.Log.Audit.File != "-" || c.Log.Level >= 0 {
		t.Errorf("%+v", c)
	}
	news, rest := c.Crawlers[0], c.Crawlers[1]
	if !slices.Equal(news.Sources, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}) ||
		!news.UserAgents[0].Match("Mozilla/5.0 (NewsBot/1)") || news.DenyStatus != 451 || rest.DenyStatus != 403 {
		t.Errorf("crawlers: %+v", c.Crawlers)
	}
	o := c.Overrides[0]
	if !o.Hosts[0].Match("api.partner.example") || o.Hosts[0].Match("partner.example") || !o.Hosts[1].Match("xn--bcher-kva.example") || o.Action != policy.Allow {
		t.Errorf("override: %+v", o)
	}
	if o.Expired(time.Date(2027, 3, 1, 23, 59, 59, 0, time.UTC)) || !o.Expired(time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC)) {
		t.Error("a day is the last one it holds")
	}
	if want := time.Date(2027, 3, 1, 16, 0, 0, 0, time.UTC); !c.Overrides[1].Expires.Equal(want) {
		t.Errorf("expires: %v", c.Overrides[1].Expires)
	}
	if new(policy.Override).Expired(time.Now()) {
		t.Error("no end is no end")
	}
	if c.Robots.MaxAge != 90*time.Minute || c.Robots.StaleFor != 0 || c.Robots.MaxBytes != 1e6 || c.Robots.UserAgent != "Gate/1 (oops)" {
		t.Errorf("robots: %+v", c.Robots)
	}
	if !slices.Equal(c.Egress.Ports, []int{80, 443}) || c.Egress.Parent.Host != "proxy.lan:1080" || c.Admin.Hosts[0] != "gate.example" {
		t.Errorf("egress: %+v, admin: %+v", c.Egress, c.Admin)
	}
}

func TestEnvironment(t *testing.T) {
	c := parse(t, `
listen: 127.0.0.1:${PORT}
data_dir: /$${PORT}/$PORT/$$
egress: {ports: ["${PORT}", 443], proxy: "${EMPTY}"}
limits:
  max_connections: ${PORT}
robots:
  user_agent: ${NESTED}
`)
	if c.Listen != "127.0.0.1:8080" || c.Egress.Ports[0] != 8080 || c.Limits.MaxConnections != 8080 || c.Egress.Parent != nil {
		t.Errorf("%+v", c)
	}
	if c.DataDir != "/${PORT}/$PORT/$$" {
		t.Errorf("data_dir: %s", c.DataDir)
	}
	if c.Robots.UserAgent != "${PORT}" {
		t.Errorf("a value is replaced again: %s", c.Robots.UserAgent)
	}
}

// TestOneDefault: a crawler may be named default if every client matches a crawler.
func TestOneDefault(t *testing.T) {
	for _, text := range []string{
		"crawlers: [{name: default, deny_status: 451}]",
		"crawlers: [{name: news, user_agents: [x]}, {name: default, user_agents: ['*']}]",
		"unknown_clients: refuse\ncrawlers: [{name: default, user_agents: [x]}]",
	} {
		parse(t, text)
	}
}

func TestShortMaxAge(t *testing.T) {
	if c := parse(t, "robots: {max_age: 1m}"); c.Robots.MinAge != time.Minute {
		t.Errorf("min_age: %v", c.Robots.MinAge)
	}
}

// TestMemory: the default leaves room for caches of any size, and as much garbage.
func TestMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"{}": 832 << 20, "robots: {cache_bytes: 1GiB}": 2368 << 20, "limits: {memory: 0}": 0,
		"robots: {cache_bytes: 1GiB}\nlimits: {memory: 1GiB}": 1 << 30,
	} {
		if got := parse(t, text).Limits.Memory; got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestRelativePaths(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gate.yaml")
	abs := filepath.Join(dir, "elsewhere")
	text := fmt.Sprintf("data_dir: data\nlog: {audit: %q}\n", abs)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.DataDir != filepath.Join(dir, "data") || c.Log.Audit.File != abs || c.HTTPS.CACert != "" {
		t.Errorf("data_dir %s, audit %s", c.DataDir, c.Log.Audit.File)
	}
	if got, err := DataDir(c); err != nil || got != c.DataDir {
		t.Errorf("DataDir: %s, %v", got, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, make([]byte, field.MaxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): ": no such file or directory",
		dir:                             ": is a folder or a pipe: a file is needed",
		big:                             ": larger than 4MiB: is this the right file?",
	} {
		_, err := LoadConfig(path)
		if err == nil || !strings.HasSuffix(err.Error(), path+want) {
			t.Errorf("got %v, want %s", err, path+want)
		}
	}
}

func TestAliases(t *testing.T) {
	c := parse(t, `
crawlers:
  - name: a
    sources: &office [10.0.0.0/8]
    deny_status: 451
  - {name: c, sources: *office}
`)
	if got := c.Crawlers[1].Sources; len(got) != 1 || !reflect.DeepEqual(got, c.Crawlers[0].Sources) {
		t.Errorf("got %+v", c.Crawlers[1])
	}
}

func TestSyntaxErrorInALongFile(t *testing.T) {
	good := strings.Repeat("  - {name: a}\n", 3000)
	_, err := ParseConfig("long.yaml", []byte("crawlers:\n"+good+"  - {name: [b}\n"+good), noEnv)
	if err == nil || !strings.HasPrefix(err.Error(), "long.yaml:3002: a [ or { isn't closed") {
		t.Errorf("got %.200v", err)
	}
}

// TestAliasBomb: a few lines with aliases can stand for millions of values.
func TestAliasBomb(t *testing.T) {
	text := "crawlers:\n  - &c {name: a, product_tokens: [" + strings.Repeat("a, ", 2000) + "a]}\n" + strings.Repeat("  - *c\n", 2000)
	_, err := ParseConfig("bomb.yaml", []byte(text), noEnv)
	if err == nil || !strings.Contains(err.Error(), "aliases") {
		t.Errorf("got %.200v", err)
	}
}

func TestUserDataDir(t *testing.T) {
	abs := func(parts ...string) string {
		return filepath.Join(append([]string{string(filepath.Separator)}, parts...)...)
	}
	home := abs("home", "ann")
	for _, c := range []struct {
		goos string
		env  map[string]string
		want string
	}{
		{"linux", map[string]string{"HOME": home}, filepath.Join(home, ".local", "share")},
		{"linux", map[string]string{"HOME": home, "XDG_DATA_HOME": abs("data")}, abs("data")},
		{"linux", map[string]string{"HOME": home, "XDG_DATA_HOME": "relative"}, filepath.Join(home, ".local", "share")},
		{"freebsd", map[string]string{"XDG_DATA_HOME": abs("data")}, abs("data")},
		{"darwin", map[string]string{"HOME": home}, filepath.Join(home, "Library", "Application Support")},
		{"windows", map[string]string{"LocalAppData": `C:\Users\ann\AppData\Local`}, `C:\Users\ann\AppData\Local`},
		{"linux", nil, ""},
		{"linux", map[string]string{"HOME": "relative"}, ""},
		{"windows", map[string]string{"HOME": home}, ""},
	} {
		got, err := userDataDir(c.goos, func(name string) string { return c.env[name] })
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s %v: got %q, %v, want %q", c.goos, c.env, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "data_dir") {
			t.Errorf("doesn't say what to do: %v", err)
		}
	}
}

// TestMistakes checks testdata/mistakes.txtar. Each file there is a configuration. The
// mistakes in a line follow it, each after #!. There are no other mistakes.
func TestMistakes(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/mistakes.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(ar.Files) == 0 {
		t.Fatal("no cases")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"text.txt": "no certificate\n", "long.txt": strings.Repeat("key ", 8), "good.pem": testKeyPEM} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range ar.Files {
		t.Run(f.Name, func(t *testing.T) {
			var want []string
			n := 0
			for line := range strings.Lines(string(f.Data)) {
				n++
				for i, text := range strings.Split(strings.TrimSuffix(line, "\n"), "#!") {
					if i > 0 {
						want = append(want, f.Name+":"+strconv.Itoa(n)+": "+strings.TrimSpace(text))
					}
				}
			}
			_, err := ParseConfig(filepath.Join(dir, f.Name), f.Data, lookup)
			if err == nil {
				t.Fatalf("accepted, want\n%s", strings.Join(want, "\n"))
			}
			got := strings.Split(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""), "\n")
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// lookup is the environment of the tests.
func lookup(name string) (string, bool) {
	value, ok := map[string]string{
		"WORD":   "oops",
		"PORT":   "8080",
		"EMPTY":  "",
		"NESTED": "${PORT}",
		"SECRET": "http://user:se cret@proxy:x",
		"LINES":  "one\ntwo",
		"LIST":   "[1, 2]",
	}[name]
	return value, ok
}

// TestMistakesKeepPasswords: no mistake repeats a value that may be a password.
func TestMistakesKeepPasswords(t *testing.T) {
	for _, login := range []string{
		`"u:hunter2"`, "hunter2", "{hunter2}", "{hunter2: x}", "*hunter2", "[hunter2]", "!!int hunter2", "!hunter2x {}",
		`{user: "u:hunter2"}`, "{user: [hunter2]}", "{user: *hunter2}", `{user: "hunter2\t"}`, "{user: !!int hunter2}",
		"{user: u, password_bcrypt: hunter2}", `{user: u, password_bcrypt: "${hunter2-x}"}`, `{user: u, password_bcrypt: "${hunter2"}`,
		`{user: "${hunter2-x}", password_bcrypt: x}`, "{user: u, password_bcrypt: {hunter2: x}}", "{user: u, password_bcrypt: !!float hunter2}",
	} {
		for _, text := range []string{"crawlers:\n- name: a\n  login: " + login + "\n", "crawlers:\n- {name: a, login: " + login + "}\n"} {
			_, err := ParseConfig("test.yaml", []byte(text), noEnv)
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: got %v", login, err)
			}
		}
	}
	_, err := ParseConfig("test.yaml", []byte("egress: {proxy: !!int \"http://u:hunter2@proxy:3128\"}"), noEnv)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("egress.proxy: got %v", err)
	}
}
