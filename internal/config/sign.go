package config

import (
	"errors"
	"fmt"
	"strings"

	"robotsgate/internal/field"
	"robotsgate/internal/keyfile"
	"robotsgate/policy/glob"
)

// Sign says how the requests of a crawler are signed (RFC 9421, Web Bot Auth).
type Sign struct {
	KeyFile string    `yaml:"key_file" doc:"a PEM file, such as news-key.pem" path:"yes"`                          // see [keyfile.Load]
	Agent   string    `yaml:"agent" doc:"the https origin of the key directory, such as https://bots.example.com"` // see [ParseAgent]
	When    SignWhen  `yaml:"when" default:"always" enum:"always,asked"`
	Form    AgentForm `yaml:"form" default:"string" enum:"string,dictionary"`

	key *keyfile.Key // in KeyFile
}

// SignWhen says which requests of a crawler are signed.
type SignWhen string

// The requests that are signed.
const (
	SignAlways SignWhen = "always"
	SignAsked  SignWhen = "asked" // only to origins that have sent Accept-Signature
)

// AgentForm is the form of Signature-Agent.
type AgentForm string

// The forms of Signature-Agent.
const (
	StringAgent     AgentForm = "string"
	DictionaryAgent AgentForm = "dictionary" // draft-ietf-webbotauth-httpsig-protocol-01
)

// Key returns the key of a crawler with requests that are signed; nil: they are not.
func (s Sign) Key() *keyfile.Key { return s.key }

// checkSign checks the crawler at i, loads its key, and makes its agent canonical. The file itself may write out the
// default, with both values empty.
func (c *Config) checkSign(i int) {
	s, sign, path := &c.source, &c.Crawlers[i].Sign, fmt.Sprintf("crawlers[%d].sign", i)
	file, agent := path+".key_file", path+".agent"
	if !s.Given(path) || sign.KeyFile == "" && sign.Agent == "" && s.Given(file) && s.Given(agent) {
		return
	}
	s.Require(sign.KeyFile != "", file, "is missing: name the file with the crawler's private key; robotsgate keys new FILE makes one")
	s.Require(sign.Agent != "", agent, "is missing: name the https origin that publishes the key, such as https://bots.example.com")
	var err error
	if sign.KeyFile != "" {
		sign.key, err = keyfile.Load(sign.KeyFile)
		s.Refuse(file, err)
	}
	if sign.Agent != "" && !s.Bad(agent) {
		sign.Agent, err = ParseAgent(sign.Agent)
		s.Refuse(agent, err)
	}
}

// ParseAgent returns the origin that publishes the keys of a crawler in canonical form: https://, the host in lower
// case and ASCII, and the port unless it is 443. The text may end in a slash.
func ParseAgent(text string) (string, error) {
	const scheme, example = "https://", "expected an https origin, such as https://bots.example.com"
	if len(text) < len(scheme) || !strings.EqualFold(text[:len(scheme)], scheme) {
		return "", fmt.Errorf("%s, got %q", example, field.Cut(text))
	}
	authority := strings.TrimSuffix(text[len(scheme):], "/")
	switch {
	case strings.ContainsFunc(authority, isControl) || strings.ContainsAny(authority, ` "'\,;*%`):
		return "", fmt.Errorf("%s: %q has a character that no host has", example, field.Cut(text))
	case strings.Contains(authority, "@"):
		return "", errors.New(example + ": leave out the user") // the text may hold a password
	case strings.ContainsAny(authority, "/?#"):
		return "", fmt.Errorf("%s: leave out the path, and what follows it, of %q; the keys are at /.well-known/http-message-signatures-directory there", example, field.Cut(text))
	}
	host, port, hasPort := authority, "", false
	if end := strings.LastIndexByte(authority, ':'); end > strings.LastIndexByte(authority, ']') {
		host, port, hasPort = authority[:end], authority[end+1:], true
	}
	literal := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
	if !literal && strings.ContainsAny(host, "[]:") {
		return "", fmt.Errorf("%s: write an IPv6 address in brackets, as in https://[2001:db8::1]", example)
	}
	name, err := glob.Name(host)
	if err != nil {
		return "", fmt.Errorf("%s: %w", example, err)
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if !hasPort {
		return scheme + name, nil
	}
	if err := checkPort(port, 1); err != nil {
		return "", fmt.Errorf("%s: %w", example, err)
	}
	if port = strings.TrimLeft(port, "0"); port == "443" {
		return scheme + name, nil
	}
	return scheme + name + ":" + port, nil
}

// warnSign warns of requests that can't be signed, and of keys that are not secret or not for one agent only.
func (c *Config) warnSign(w *source) {
	agents := map[string]string{} // by the ID of the key
	for i, crawler := range c.Crawlers {
		sign, path := crawler.Sign, fmt.Sprintf("crawlers[%d].sign", i)
		if sign.key == nil {
			// The values may be those of environment variables that are empty by mistake.
			w.Require(!c.source.Given(path), path, "key_file and agent are empty, so the requests of this crawler are not signed: fill them in, or remove sign if that is meant")
			continue
		}
		mode, exposed := keyfile.Exposed(sign.KeyFile)
		w.Require(!exposed, path+".key_file", "the group or others may read the private key (mode %04o): chmod 600 %s", mode, sign.KeyFile)
		agent, taken := agents[sign.key.ID()]
		w.Require(!taken || agent == sign.Agent, path+".agent", "has the same key as %s: make a key for each agent", agent)
		if !taken {
			agents[sign.key.ID()] = sign.Agent
		}
		w.Require(c.HTTPS.Intercept && len(c.HTTPS.Passthrough) == 0, path, "https that is passed through unseen can't be signed")
	}
}
