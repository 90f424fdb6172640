package gate

import (
	"slices"
	"testing"

	"robotsgate/internal/config"
)

// TestSecretFiles has configurations with and without a password, which makes the file itself secret.
func TestSecretFiles(t *testing.T) {
	lookup := func(string) (string, bool) { return "", false }
	for _, c := range []struct {
		text string
		want bool
	}{
		{`egress: {proxy: "http://proxy.lan:3128"}`, false},
		{`egress: {proxy: "http://user:password@proxy.lan:3128"}`, true},
		{`crawlers: [{name: news, user_agents: [news]}]`, false},
		{`crawlers: [{name: news, login: {user: news, password_bcrypt: "$2a$10$abcdefghijklmnopqrstuuGy2LM1fyWS8eXcT2yxQwzC0G0Qjzr3G"}}]`, true},
	} {
		got, err := ParseConfig("gate.yaml", []byte(c.text), lookup)
		if err != nil {
			t.Fatal(err)
		}
		if secret := slices.Contains(got.SecretFiles(), "gate.yaml"); secret != c.want {
			t.Errorf("%s: the file is secret: got %v, want %v", c.text, secret, c.want)
		}
	}
	// A parent proxy from the environment is not in the file.
	c, err := ParseConfig("gate.yaml", nil, lookup)
	if err != nil {
		t.Fatal(err)
	}
	if c.Egress.Parent, err = config.ParseProxy("http://user:password@proxy.lan:3128"); err != nil {
		t.Fatal(err)
	}
	if got := c.SecretFiles(); len(got) > 0 {
		t.Errorf("got %q, want none", got)
	}
}
