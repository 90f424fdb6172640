package proxy

import (
	"crypto/tls"
	"strings"
	"testing"

	"robotsgate/policy"
)

// What New cannot do without is refused with its name.
func TestNewRefuses(t *testing.T) {
	leaf := func(string) (*tls.Certificate, error) { return nil, nil }
	for want, o := range map[string]Options{
		"Options.Leaf":      {Settings: Settings{Engine: new(policy.Engine), Upstream: new(Transport)}},
		"Settings.Engine":   {Leaf: leaf, Settings: Settings{Upstream: new(Transport)}},
		"Settings.Upstream": {Leaf: leaf, Settings: Settings{Engine: new(policy.Engine)}},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s: got the error %v", want, err)
		}
	}
}
