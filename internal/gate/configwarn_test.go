package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"robotsgate/internal/keyfile"
)

func warnings(c *Config) string {
	var lines []string
	for _, m := range c.Warnings() {
		lines = append(lines, m.Error())
	}
	return strings.Join(lines, "\n")
}

func TestWarnings(t *testing.T) {
	const (
		login    = "{user: u, password_bcrypt: $2y$04$oaPq40YE8psIiR7NWW73T.nzAHGU99Ynf8Zxw7jjB8MB9dzzIGrYO}"
		refusing = "crawlers: [{name: a, sources: [10.0.0.0/8], purposes: [search]}]\nusage: {reserved: refuse}\n"
	)
	for _, c := range []struct{ name, text, want string }{
		{"the default", "", ""},
		{"open to all", "mode: report\nlisten: 0.0.0.0:9309", "test.yaml:2: listen: 0.0.0.0:9309 is reachable from other machines"},
		{"open to all, by no host", `listen: ":9309"`, "open proxy"},
		{"open on IPv6", `listen: "[::]:9309"`, "open proxy"},
		{"open on a name", "listen: gate.example:9309", "open proxy"},
		{"loopback IPv6", `listen: "[::1]:9309"`, ""},
		{"loopback name", "listen: localhost:9309", ""},
		{"another loopback address", "listen: 127.0.0.2:9309", ""},
		{"unknown clients may", "listen: 10.0.0.1:9309\ncrawlers: [{name: a, sources: [10.0.0.0/8]}]", "open proxy"},
		{"known addresses only", "unknown_clients: refuse\nlisten: 10.0.0.1:9309\ncrawlers: [{name: a, sources: [10.0.0.0/8]}]", ""},
		{"logins only", "unknown_clients: refuse\nlisten: 10.0.0.1:9309\ncrawlers: [{name: a, login: " + login + "}]", ""},
		{"what any client can say, or every address", "unknown_clients: refuse\nlisten: 10.0.0.1:9309\n" +
			"crawlers: [{name: a, user_agents: [x]}, {name: b, sources: [0.0.0.0/0]}]", "open proxy"},
		{"redirected from other machines", "listen_transparent: \"[::]:9311\"", "test.yaml:1: listen_transparent: [::]:9311 is reachable from other machines"},
		{"redirected on this machine", "listen_transparent: 127.0.0.1:9311", ""},
		{"redirected from known clients", "listen_transparent: \"[::]:9311\"\ncrawlers: [{name: a, sources: [10.0.0.0/8]}]\nunknown_clients: refuse", ""},
		{"digits", "crawlers:\n  - name: a\n    product_tokens:\n      - Bot\n      - Bot2", "test.yaml:5: crawlers.product_tokens: Bot2 has a digit"},
		{"never reached", "crawlers:\n  - name: all\n  - name: b\n    sources: [10.0.0.0/8]", "test.yaml:3: crawlers.name: b is never reached: all, before it"},
		{"the same login", "crawlers:\n  - name: a\n    login: &one " + login + "\n  - name: b\n    login: *one\n    sources: [10.0.0.0/8]",
			"test.yaml:4: crawlers.name: b is never reached: a, before it"},
		{"one login, two agents", "crawlers:\n  - name: a\n    login: &one " + login + "\n    user_agents: [a]\n  - name: b\n    login: *one\n    user_agents: [b]", ""},
		{"another password", "crawlers:\n  - name: a\n    login: " + login +
			"\n  - name: b\n    login: {user: u, password_bcrypt: $2y$04$eEsOJWFlwbuGngOB1H3rdODCpD3CqxIpVGEFANDM2Ezt5pVNeHCsi}", ""},
		{"a part of its sources", "crawlers:\n  - {name: a, sources: [10.0.0.0/8], user_agents: [x, Y]}\n" +
			"  - {name: b, sources: [10.1.0.0/16], user_agents: [y]}",
			"test.yaml:3: crawlers.name: b is never reached: a"},
		{"more than its sources", "crawlers:\n  - {name: a, sources: [10.0.0.0/8]}\n  - {name: b, sources: [10.1.0.0/16, 11.0.0.0/8]}\n  - {name: c, user_agents: [x]}", ""},
		{"any agent", "crawlers:\n  - {name: a, user_agents: ['*']}\n  - {name: b}", "test.yaml:3: crawlers.name: b is never reached: a"},
		{"paths of an unseen host", "https: {passthrough: [\"*.bank.example\"]}\noverrides:\n  - hosts: [shop.example, www.bank.example]\n" +
			"    paths: [/api/]\n    action: deny\n    reason: r",
			"test.yaml:4: overrides.paths: https to www.bank.example is passed through unseen"},
		{"paths of unseen hosts", "https: {passthrough: [\"*.bank.example\"]}\noverrides: [{hosts: [\"*.bank.example\"], paths: [/a], action: deny, reason: r}]", "unseen"},
		{"paths where nothing is seen", "https: {intercept: false}\noverrides: [{hosts: [\"*\"], paths: [/a], action: deny, reason: r}]", "unseen"},
		{"all paths of unseen hosts", "https: {intercept: false}\noverrides: [{hosts: [\"*\"], paths: [/a, /], action: deny, reason: r}]", ""},
		{"an unseen host", "https: {passthrough: [\"*.bank.example\"]}\noverrides: [{hosts: [www.bank.example], action: deny, reason: r}]", ""},
		{"paths of other hosts", "https: {passthrough: [www.bank.example]}\noverrides: [{hosts: [\"*\", \"*.bank.example\", bank.example], paths: [/a], action: deny, reason: r}]", ""},
		{"methods of an unseen host", "https: {passthrough: [www.bank.example]}\noverrides:\n  - hosts: [www.bank.example]\n    methods: [GET]\n" +
			"    action: allow\n    reason: r",
			"test.yaml:4: overrides.methods: https to www.bank.example is passed through unseen, where an override for some methods does not count"},
		{"denied methods of an unseen host", "https: {passthrough: [www.bank.example]}\noverrides:\n  - hosts: [www.bank.example]\n" +
			"    methods: [POST]\n    action: deny\n    reason: r",
			"test.yaml:4: overrides.methods: https to www.bank.example is passed through unseen, so that an override that denies some methods refuses all of it"},
		{"methods of other hosts", "https: {passthrough: [www.bank.example]}\noverrides: [{hosts: [bank.example], methods: [POST], action: deny, reason: r}]", ""},
		{"robots without a denial", "overrides:\n  - hosts: [a]\n    action: robots\n    reason: r\n  - {hosts: [b], action: robots, reason: r}",
			"test.yaml:3: overrides.action: robots changes nothing here"},
		{"robots before a denial", "overrides:\n  - {hosts: [a], action: robots, reason: r}\n  - {hosts: [\"*\"], action: deny, reason: r}", ""},
		{"after a denial of all", "overrides:\n  - {hosts: [\"*\"], paths: [/], action: deny, reason: r}\n  - hosts: [a]\n    action: robots\n" +
			"    reason: r\n  - {hosts: [b], action: deny, reason: r}",
			"test.yaml:3: overrides.hosts: never reached: the override of line 2, before it, is for all requests"},
		{"after a denial of some", "overrides:\n  - {hosts: [\"*\"], paths: [/a], action: deny, reason: r}\n" +
			"  - {hosts: [\"*\"], methods: [PUT], action: deny, reason: r}\n  - {hosts: [\"*\"], crawlers: [default], action: deny, reason: r}\n" +
			"  - {hosts: [\"*\"], expires: 2999-01-01, action: deny, reason: r}\n  - {hosts: [b], action: deny, reason: r}", ""},
		{"refuse without purposes", "crawlers: [{name: a, sources: [10.0.0.0/8]}]\nusage:\n  reserved: refuse",
			"test.yaml:3: usage.reserved: refuse refuses nothing, since no crawler has purposes or content_use"},
		{"refuse with purposes", "crawlers: [{name: a, sources: [10.0.0.0/8], purposes: [search]}]\nusage:\n  reserved: refuse", ""},
		{"purposes alone", "crawlers:\n- name: b\n  sources: [11.0.0.0/8]\n- name: a\n  sources: [10.0.0.0/8]\n  purposes: [search]",
			"test.yaml:6: crawlers.purposes: nothing is refused by it unless usage.reserved is refuse"},
		{"a level alone", "crawlers:\n- name: a\n  sources: [10.0.0.0/8]\n  content_use: full",
			"test.yaml:4: crawlers.content_use: nothing is refused by it unless usage.reserved is refuse"},
		{"refuse with a level", "crawlers: [{name: a, sources: [10.0.0.0/8], content_use: full}]\nusage:\n  reserved: refuse", ""},
		{"purposes, and to annotate is meant", "crawlers: [{name: a, sources: [10.0.0.0/8], purposes: [search]}]\nusage: {reserved: annotate}", ""},
		{"refuse without pages", refusing + "tags:\n  html: false", "test.yaml:4: tags.html: false: the preferences in pages are not known"},
		{"refuse without interception", refusing + "https:\n  intercept: false", "test.yaml:4: https.intercept: https responses are not seen"},
		{"refuse with all passed through", refusing + "https:\n  passthrough: [\"*\"]", "test.yaml:4: https.passthrough: https responses are not seen"},
		{"refuse with some passed through", refusing + "https: {passthrough: [a.example]}", ""},
		{"annotate without interception", "crawlers: [{name: a, sources: [10.0.0.0/8], purposes: [search]}]\nusage: {reserved: annotate}\nhttps: {intercept: false}", ""},
		{"all last", "crawlers:\n  - name: b\n    sources: [10.0.0.0/8]\n  - name: all", ""},
	} {
		got := warnings(parse(t, c.text))
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestExpiredOverride(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock starts in the year 2000
		c := parse(t, "overrides:\n  - {hosts: [a], action: deny, reason: r,\n     expires: 2000-01-02}")
		if got := warnings(c); got != "" {
			t.Errorf("before: %s", got)
		}
		time.Sleep(48 * time.Hour) // fake clock
		if got := warnings(c); !strings.HasPrefix(got, "test.yaml:3: overrides.expires: expired at 2000-01-03T00:00:00Z") {
			t.Errorf("after: %q", got)
		}
	})
}

func TestSetListen(t *testing.T) {
	c := parse(t, "listen: 127.0.0.1:1")
	if err := c.SetListen("127.0.0.1"); err == nil || c.Listen != "127.0.0.1:1" {
		t.Errorf("no port: %v", err)
	}
	if err := c.SetListen("0.0.0.0:0"); err != nil || c.Listen != "0.0.0.0:0" {
		t.Errorf("%v", err)
	}
	if got := warnings(c); !strings.HasPrefix(got, "listen: 0.0.0.0:0 is reachable") {
		t.Errorf("the file is named, which has another address: %q", got)
	}
	c = DefaultConfig()
	if err := c.SetListen(":1"); err != nil || !strings.HasPrefix(warnings(c), "listen: :1 is reachable") {
		t.Errorf("without a file: %v, %q", err, warnings(c))
	}
}

// Keys for tests only.
const (
	testKeyPEM   = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEILXb6ORTdKBmHXlZp1/xV/5E2eTq0ksOt5KcQA0AaBzG\n-----END PRIVATE KEY-----\n"
	testKeyID    = "3zX4ZTuWzsy7R8qB0apIF_NinHsfq8PFN0JA_d0m96w"
	otherKeyPEM  = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB\n-----END PRIVATE KEY-----\n"
	publishedPEM = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n" // RFC 9421, B.1.4
)

// writeFiles writes files into a folder of the test, readable by their owner only.
func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The key is read from a path that starts at the configuration's folder, and no form of the configuration has it.
func TestSign(t *testing.T) {
	dir := writeFiles(t, map[string]string{"key.pem": testKeyPEM})
	c, err := ParseConfig(filepath.Join(dir, "gate.yaml"), []byte("crawlers:\n- name: a\n- name: b\n"+
		"  sign: {key_file: key.pem, agent: HTTPS://Bots.Example.com:0443/, form: dictionary}\n"), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if c.Crawlers[0].Sign.Key() != nil || c.Crawlers[0].Sign != DefaultCrawler().Sign {
		t.Errorf("a crawler without sign has %+v", c.Crawlers[0].Sign)
	}
	got := c.Crawlers[1].Sign
	if got.Key() == nil || got.Key().ID() != testKeyID {
		t.Fatalf("got the key %v, want %s", got.Key(), testKeyID)
	}
	if got.KeyFile != filepath.Join(dir, "key.pem") || got.Agent != "https://bots.example.com" || got.Form != keyfile.DictionaryAgent {
		t.Errorf("got %+v", got)
	}
	text, err := c.Effective()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := KeptConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	if s := kept.Crawlers[1].Sign; s.Key() != nil || s.Agent != got.Agent || s.Form != got.Form {
		t.Errorf("the kept configuration has %+v", s)
	}
	seed := "tdvo5FN0oGYdeVmnX_FX_kTZ5OrSSw63kpxADQBoHMY" // and in the forms in which fmt and encoding/json write bytes
	for name, form := range map[string]string{"Effective": string(text), "%v": fmt.Sprintf("%v", c), "%+v": fmt.Sprintf("%+v", c.Crawlers), "%#v": fmt.Sprintf("%#v", got)} {
		for _, secret := range []string{seed, "tdvo5FN0oGYd", "MC4CAQAwBQYDK2VwBCIEILXb", "181 219 232 228", "0xb5, 0xdb, 0xe8", "b5dbe8e4"} {
			if strings.Contains(form, secret) {
				t.Errorf("%s has %q of the private key: %s", name, secret, form)
			}
		}
	}
}

// A key that can't be used is a mistake at its line.
func TestSignKeyMistakes(t *testing.T) {
	dir := writeFiles(t, map[string]string{"published.pem": publishedPEM, "empty.pem": "", "gate.yaml": ""})
	for file, want := range map[string]string{"published.pem": "RFC 9421", "empty.pem": "PEM", ".": "regular file", "gone.pem": "no such file"} {
		_, err := ParseConfig(filepath.Join(dir, "gate.yaml"), fmt.Appendf(nil, "crawlers:\n- name: a\n  sign:\n    agent: https://bots.example.com\n    key_file: %s\n", file), noEnv)
		prefix := filepath.Join(dir, "gate.yaml") + ":5: crawlers.sign.key_file: " + filepath.Join(dir, file) + ": "
		if err == nil || !strings.HasPrefix(err.Error(), prefix) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "robotsgate keys new") {
			t.Errorf("%s: got %v, want %s… with %q", file, err, prefix, want)
		}
	}
}

func TestSignWarnings(t *testing.T) {
	dir := writeFiles(t, map[string]string{"one.pem": testKeyPEM, "same.pem": testKeyPEM, "two.pem": otherKeyPEM, "open.pem": otherKeyPEM})
	if err := os.Chmod(filepath.Join(dir, "open.pem"), 0o640); err != nil {
		t.Fatal(err)
	}
	const unseen = "crawlers.sign: https that is passed through unseen can't be signed"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing to say", "crawlers:\n- name: a\n  sources: [10.0.0.0/8]\n  sign: {key_file: one.pem, agent: https://a.example}\n- name: b\n" +
			"  sign: {key_file: two.pem, agent: https://b.example}", nil},
		{"one agent", "crawlers:\n- name: a\n  sources: [10.0.0.0/8]\n  sign: {key_file: one.pem, agent: https://a.example}\n- name: b\n" +
			"  sign: {key_file: same.pem, agent: https://A.example/}", nil},
		{"two agents", "crawlers:\n- name: a\n  sources: [10.0.0.0/8]\n  sign: {key_file: one.pem, agent: https://a.example}\n- name: b\n  sign:\n" +
			"    key_file: same.pem\n    agent: https://b.example",
			[]string{"8: crawlers.sign.agent: has the same key as https://a.example"}},
		{"passthrough", "https: {passthrough: [bank.example]}\ncrawlers:\n- name: a\n  sign:\n    key_file: one.pem\n    agent: https://a.example", []string{"4: " + unseen}},
		{"no interception", "https: {intercept: false}\ncrawlers:\n- name: a\n  sign: {key_file: one.pem, agent: https://a.example}", []string{"4: " + unseen}},
		{"empty", "crawlers:\n- name: a\n  sign: {key_file: '', agent: '', form: string}",
			[]string{"3: crawlers.sign: key_file and agent are empty, so the requests of this crawler are not signed: fill them in, or remove sign if that is meant"}},
		{"passthrough, unsigned", "https: {passthrough: [bank.example]}\ncrawlers:\n- name: a", nil},
		{"readable", "crawlers:\n- name: a\n  sign:\n    key_file: open.pem\n    agent: https://a.example",
			[]string{"4: crawlers.sign.key_file: the group or others may read the private key (mode 0640): chmod 600 " + filepath.Join(dir, "open.pem")}},
		{"all", "https: {intercept: false}\ncrawlers:\n- name: a\n  sources: [10.0.0.0/8]\n  sign: {key_file: two.pem, agent: https://a.example}\n" +
			"- name: b\n  sign: {key_file: open.pem, agent: https://b.example}",
			[]string{"5: " + unseen, "7: " + unseen, "same key as https://a.example", "may read"}},
	} {
		if runtime.GOOS == "windows" && (c.name == "readable" || c.name == "all") {
			continue // a mode says nothing there
		}
		parsed, err := ParseConfig(filepath.Join(dir, "gate.yaml"), []byte(c.text), noEnv)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := warnings(parsed)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %q, want %q", c.name, got, want)
			}
		}
		if n := len(parsed.Warnings()); n != len(c.want) {
			t.Errorf("%s: got %d warnings, want %d:\n%s", c.name, n, len(c.want), got)
		}
	}
}
