package gate

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"robotsgate/internal/config"
)

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
	c.Crawlers[0].Login.Hash = "xxxxx"
	c.Egress.Parent = again.Egress.Parent
	c.Overrides[0].Reason = strings.ReplaceAll(c.Overrides[0].Reason, "\xff", "\ufffd")
	c.source, again.source = nil, nil
	if !reflect.DeepEqual(c, again) {
		t.Errorf("got  %+v\nwant %+v", again, c)
	}
	if got := again.Egress.Parent.String(); got != "http://xxxxx@proxy.lan:3128" {
		t.Errorf("proxy %s", got)
	}
	// Every key is there, keys with their defaults too.
	for _, key := range []string{"unknown_clients: \"allow\"", "min_age: \"5m\"", "disk_bytes: \"10GiB\"", "intercept: true", "passthrough: []", "audit_keep: 30", "expires: \"2027-03-02T00:00:00Z\""} {
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
