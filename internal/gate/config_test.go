package gate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/config"
	"robotsgate/internal/field"
	"robotsgate/internal/keyfile"
	"robotsgate/policy"
)

const exampleFile = "../../config.yaml"

func noEnv(string) (string, bool) { return "", false }

// TestExampleIsTheDefault: config.yaml has the default of every key.
func TestExampleIsTheDefault(t *testing.T) {
	c, err := LoadConfig(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	c.source = want.source
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

// TestDefaultListeners: without a configuration only this machine can connect.
func TestDefaultListeners(t *testing.T) {
	c := DefaultConfig()
	if !isLoopback(c.Listen) || !isLoopback(c.Admin.Listen) || c.ListenTransparent != "" {
		t.Errorf("the gate listens on %q, %q and %q", c.Listen, c.Admin.Listen, c.ListenTransparent)
	}
}

// TestExampleHasEveryKey: config.yaml has every key, those of list items in comments, in
// the order of the structs and with a comment.
func TestExampleHasEveryKey(t *testing.T) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^[ #-]*([a-z_]+):( .*)?$`)
	var found []string
	for _, m := range line.FindAllSubmatch(data, -1) {
		found = append(found, string(m[1]))
	}
	var want []string
	for _, path := range keyPaths(reflect.TypeFor[Config](), "", "") {
		if !strings.HasPrefix(path, "crawlers.login.") { // which is on one line
			want = append(want, path[strings.LastIndexByte(path, '.')+1:])
		}
	}
	if !slices.Equal(found, want) {
		t.Errorf("got  %q\nwant %q", found, want)
	}
	for l := range strings.Lines(string(data)) {
		key := line.FindStringSubmatch(strings.TrimSuffix(l, "\n"))
		if key != nil && strings.TrimSpace(key[2]) != "" && !strings.HasSuffix(key[2], "[]") && !strings.Contains(key[2], "#") {
			t.Errorf("no reason given: %s", l)
		}
	}
}

// keyPaths returns the paths of the keys of a struct at path, in order, and those of its sections. With a tag it returns
// only keys that have the tag.
func keyPaths(section reflect.Type, path, tag string) (all []string) {
	for f := range section.Fields() {
		key, inner := f.Tag.Get("yaml"), f.Type
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		child := field.Join(path, key)
		switch {
		case f.Anonymous:
			child = path
		case key == "":
			continue
		case tag == "" || f.Tag.Get(tag) != "":
			all = append(all, child)
		}
		if inner.Kind() == reflect.Struct {
			all = append(all, keyPaths(inner, child, tag)...)
		}
	}
	return all
}

// TestExampleItems: the examples in config.yaml's comments are valid.
func TestExampleItems(t *testing.T) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	data = regexp.MustCompile(`(?m)^(crawlers|overrides|  budgets): \[\] *(#.*)?$`).ReplaceAll(data, []byte("$1:"))
	data = regexp.MustCompile(`(?m)^#(  +[- ] ?[a-z])`).ReplaceAll(data, []byte("$1"))
	c, err := ParseConfig("config.yaml", data, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Crawlers) != 1 || !reflect.DeepEqual(c.Crawlers[0], DefaultCrawler()) {
		t.Errorf("the crawler shown is not the default one: %+v", c.Crawlers)
	}
	if len(c.Pace.Budgets) != 1 || c.Pace.Budgets[0].Requests != 10000 {
		t.Errorf("budgets: %+v", c.Pace.Budgets)
	}
	if len(c.Overrides) != 1 || c.Overrides[0].Reason != "contract 2026-17" {
		t.Errorf("overrides: %+v", c.Overrides)
	}
}

func TestEmptyIsTheDefault(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "--- # nothing\n...\n", "~\n", "\ufeff", "crawlers:\nrobots:\nlog: {}\n", "crawlers: []\negress: {ports: []}\n"} {
		c, err := ParseConfig("x.yaml", []byte(text), noEnv)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		want := DefaultConfig()
		c.source = want.source
		if !reflect.DeepEqual(c, want) {
			t.Errorf("%q: not the default", text)
		}
	}
}

// FuzzParse: a mistake cites a line that exists, in one line of text, and a configuration
// without mistakes is within its bounds.
func FuzzParse(f *testing.F) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		f.Fatal(err)
	}
	// Short inputs, so that many can be tried: each section of the file by itself.
	for section := range strings.SplitSeq(string(data), "\n\n") {
		f.Add([]byte(section))
	}
	f.Add([]byte("a: &a [*a]\nlisten: *a\ncrawlers: [{<<: &m {name: x, <<: *m}}]"))
	f.Add([]byte("overrides: [{hosts: ['*'], action: deny, reason: x, expires: 2027-03-01}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig("fuzz.yaml", data, func(name string) (string, bool) { return name, name != "UNSET" })
		if err == nil {
			if c.Robots.MaxAge <= 0 || c.Robots.MinAge > c.Robots.MaxAge || c.Limits.MaxConnections < 1 {
				t.Errorf("accepted: %+v", c)
			}
			c.Warnings()
			return
		}
		lines := 2 + bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + bytes.Count(data, []byte("\u2028")) + bytes.Count(data, []byte("\u2029")) + bytes.Count(data, []byte("\u0085"))
		for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
			m := err.(field.Mistake)
			if m.Line < 1 || m.Line > lines || strings.ContainsAny(m.Error(), "\n\r") {
				t.Errorf("%q (of %d lines)", m, lines)
			}
		}
	})
}

// TestRestartIsSaid: config.yaml marks every key that takes effect at start only, and no
// other, with [restart].
func TestRestartIsSaid(t *testing.T) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	section := ""
	key := regexp.MustCompile(`^( *)([a-z_]+):`)
	for line := range strings.Lines(string(data)) {
		m := key.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if m[1] == "" {
			section = m[2]
		}
		if strings.Contains(line, "# [restart] ") {
			said = append(said, strings.TrimPrefix(strings.Repeat(section+".", len(m[1])/2)+m[2], "."))
		}
	}
	if want := keyPaths(reflect.TypeFor[Config](), "", "restart"); !slices.Equal(said, want) {
		t.Errorf("%s says [restart] of %q, want %q", exampleFile, said, want)
	}
}

const everything = `
listen: 127.0.0.1:1234
data_dir: ${DIR}
mode: report
crawlers:
- name: news
  login: {user: u, password_bcrypt: "$2a$10$abcdefghijklmnopqrstuuGy2LM1fyWS8eXcT2yxQwzC0G0Qjzr3G"}
  sources: [10.0.0.0/8, 2001:db8::/32]
  user_agents: ["*news*", "${AGENT}"]
  product_tokens: [NewsBot]
  purposes: [train-ai, tdm]
  deny_status: 451
overrides:
- hosts: ["*.PARTNER.example"]
  paths: ["/api/$${x}", "*#"]
  methods: [GET, HEAD]
  crawlers: [news]
  action: allow
  reason: "a: \"b\" \u2028 ${REASON}"
  expires: 2027-03-01
robots: {max_age: 90m, max_bytes: 1MiB, after_stale: keep}
usage: {reserved: refuse, tdmrep: true, unread: refuse}
egress: {proxy: "http://me:${PASSWORD}@proxy.lan:3128", ports: [80, 443]}
log: {level: warn, redact_query: true}
`

// TestEffective writes every key with the value in force, and reads it again.
func TestEffective(t *testing.T) {
	env := map[string]string{"DIR": "/data", "AGENT": "true", "REASON": "${NOT} $ \xff", "PASSWORD": "hunter2"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	c := DefaultConfig()
	c.source = config.Decode(c, "x", "", []byte(everything), lookup)
	if err := c.source.Err(); err != nil {
		t.Fatal(err)
	}
	text, err := c.Effective()
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{"hunter2", "$2a$"} {
		if bytes.Contains(text, []byte(hidden)) {
			t.Errorf("%s is in it:\n%s", hidden, text)
		}
	}
	again, err := KeptConfig(text)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	twice, err := again.Effective()
	if err != nil || !bytes.Equal(text, twice) {
		t.Errorf("read and written again (%v):\n%s\nwant\n%s", err, twice, text)
	}
	// Everything is equal but secrets and invalid UTF-8.
	c.Crawlers[0].Login = policy.Login{User: "xxxxx", Hash: "xxxxx"}
	c.Egress.Parent = again.Egress.Parent
	c.Overrides[0].Reason = strings.ReplaceAll(c.Overrides[0].Reason, "\xff", "\ufffd")
	c.source, again.source = nil, nil
	if !reflect.DeepEqual(c, again) {
		t.Errorf("got  %+v\nwant %+v", again, c)
	}
	// Every key is there, keys with their defaults too.
	for _, key := range []string{"unknown_clients: allow\n", "min_age: 5m0s\n", "disk_bytes: 10GiB\n", "intercept: true", "passthrough: []", "audit_keep: 30", "expires: \"2027-03-02T00:00:00Z\""} {
		if !bytes.Contains(text, []byte(key)) {
			t.Errorf("%s is missing in\n%s", key, text)
		}
	}
}

// TestKeptDamaged: Kept refuses text that is not a configuration.
func TestKeptDamaged(t *testing.T) {
	for _, text := range []string{"nonsense: true\n", "[", "listen: \"${X}\"\n", "robots: {max_age: never}\n"} {
		if _, err := KeptConfig([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// TestFleetSecret: the password of the store is in no configuration that is kept.
func TestFleetSecret(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fleet.key"), make([]byte, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "fleet: {address: 'redis://gate:${PW}@a.lan:1,b.lan:2', key_file: fleet.key}"
	c, err := ParseConfig(filepath.Join(dir, "x.yaml"), []byte(text), func(string) (string, bool) { return "hunter2", true })
	if err != nil {
		t.Fatal(err)
	}
	kept, err := c.Effective()
	if err != nil || bytes.Contains(kept, []byte("hunter2")) || !bytes.Contains(kept, []byte("address: xxxxx")) {
		t.Errorf("%v\n%s", err, kept)
	}
	if again, err := KeptConfig(kept); err != nil || again.Fleet.Prefix != "robotsgate" {
		t.Errorf("%+v, %v", again, err)
	}
	if got := string(c.Fleet.Address); got != "redis://gate:hunter2@a.lan:1,b.lan:2" {
		t.Errorf("the gate has the address %s", got)
	}
}

// TestAdmit: unknown clients become a crawler with a name that no other crawler has.
func TestAdmit(t *testing.T) {
	for names, want := range map[string]string{
		"":                  "",
		"news":              "news default",
		"default":           "default unknown-2",
		"default unknown-2": "default unknown-2 unknown-3",
	} {
		c := DefaultConfig()
		c.UnknownClients = RefuseClients
		for name := range strings.FieldsSeq(names) {
			c.Crawlers = append(c.Crawlers, Crawler{Crawler: policy.Crawler{Name: name, Login: policy.Login{User: "u", Hash: "h"}}})
		}
		c.Admit()
		if err := c.SetProductToken("NewsBot"); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, k := range c.Crawlers {
			got = append(got, k.Name)
			if len(k.Tokens) != 1 || k.Tokens[0] != "NewsBot" {
				t.Errorf("%q: %s obeys %q", names, k.Name, k.Tokens)
			}
		}
		if want == "" {
			want = "default" // --token needs one
		}
		if strings.Join(got, " ") != want || c.UnknownClients != AllowClients {
			t.Errorf("%q: %q, want %q; unknown clients: %s", names, got, want, c.UnknownClients)
		}
	}
}

// TestAgents: crawlers with one agent have one directory, which has each key once.
func TestAgents(t *testing.T) {
	dir := t.TempDir()
	ids := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		key, err := keyfile.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		ids[key.ID()] = name
	}
	c, err := ParseConfig(filepath.Join(dir, "gate.yaml"), []byte(`
crawlers:
- {name: first, sign: {key_file: b, agent: "https://bots.example.com"}, user_agents: [a]}
- {name: unsigned, user_agents: [b]}
- {name: second, sign: {key_file: c, agent: "https://other.example:8443/"}, user_agents: [c]}
- {name: third, sign: {key_file: a, agent: "HTTPS://Bots.Example.com:443/"}, user_agents: [d]}
- {name: fourth, sign: {key_file: b, agent: "https://bots.example.com"}}
`), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, agent := range c.Agents() {
		var line strings.Builder
		line.WriteString(agent.Origin + " " + agent.Authority())
		for _, key := range agent.Keys {
			line.WriteString(" " + ids[key.ID()])
		}
		got = append(got, line.String())
	}
	want := []string{"https://bots.example.com bots.example.com b a", "https://other.example:8443 other.example:8443 c"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if agents := DefaultConfig().Agents(); len(agents) != 0 {
		t.Errorf("the defaults have the agents %s", fmt.Sprint(agents))
	}
}

func TestUserAgent(t *testing.T) {
	for version, want := range map[string]string{"v1.2.3": "robotsgate/1", "v12.0.0-20261129120000-0123456789ab": "robotsgate/12", "(devel)": "robotsgate/0"} {
		if got := UserAgent(version); got != want {
			t.Errorf("%s: got %q, want %q", version, got, want)
		}
	}
}
