package gate

import (
	"strings"
	"testing"

	"robotsgate/policy"
)

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
