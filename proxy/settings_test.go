package proxy

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

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

// Without a setting, 15 minutes may pass without data from an origin, or without a client that reads.
func TestDefaultSilence(t *testing.T) {
	p, err := New(Options{Leaf: func(string) (*tls.Certificate, error) { return nil, nil }, Settings: Settings{Engine: new(policy.Engine), Upstream: new(Transport)}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Silence != 15*time.Minute {
		t.Errorf("got %v, want 15 minutes", p.Silence)
	}
}
