package keyfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"robotsgate/internal/field"
	"robotsgate/policy/canonical"
)

// Config says how the requests of a crawler are signed (RFC 9421, Web Bot Auth).
type Config struct {
	KeyFile string    `yaml:"key_file" doc:"a PEM file, such as news-key.pem" path:"yes"`                          // see [Load]
	Agent   string    `yaml:"agent" doc:"the https origin of the key directory, such as https://bots.example.com"` // see [ParseAgent]
	Form    AgentForm `yaml:"form" enum:"string,dictionary"`

	key *Key // in KeyFile
}

// AgentForm is the form of Signature-Agent.
type AgentForm string

// The forms of Signature-Agent.
const (
	StringAgent     AgentForm = "string"
	DictionaryAgent AgentForm = "dictionary" // draft-ietf-webbotauth-httpsig-protocol-01
)

// Key returns the key of a crawler with requests that are signed; nil: they are not.
func (c Config) Key() *Key { return c.key }

// Default returns the values of fields that are left out. They sign nothing.
func Default() Config { return Config{Form: StringAgent} }

// Check reports mistakes, loads the key, and makes the agent canonical. The default may be written out, with both
// values empty.
func (c *Config) Check(m *field.Mistakes) {
	if !m.Given("") || c.KeyFile == "" && c.Agent == "" && m.Given("key_file") && m.Given("agent") {
		return
	}
	m.Require(c.KeyFile != "", "key_file", "is missing: name the file with the crawler's private key; robotsgate keys new FILE makes one")
	m.Require(c.Agent != "", "agent", "is missing: name the https origin that publishes the key, such as https://bots.example.com")
	var err error
	if c.KeyFile != "" {
		c.key, err = Load(c.KeyFile)
		m.Refuse("key_file", err)
	}
	if c.Agent != "" && !m.Bad("agent") {
		c.Agent, err = ParseAgent(c.Agent)
		m.Refuse("agent", err)
	}
}

// Warn reports requests that are not signed, and keys that are not secret or not for one agent only. agents has the
// agents of the keys seen before, by their IDs.
func (c *Config) Warn(m *field.Mistakes, agents map[string]string) {
	if c.key == nil {
		// The values may be those of environment variables that are empty by mistake.
		m.Require(!m.Given(""), "", "key_file and agent are empty, so the requests of this crawler are not signed: fill them in, or remove sign if that is meant")
		return
	}
	mode, exposed := Exposed(c.KeyFile)
	m.Require(!exposed, "key_file", "the group or others may read the private key (mode %04o): chmod 600 %s", mode, c.KeyFile)
	agent, taken := agents[c.key.ID()]
	m.Require(!taken || agent == c.Agent, "agent", "has the same key as %s: make a key for each agent", agent)
	if !taken {
		agents[c.key.ID()] = c.Agent
	}
}

// ParseAgent returns the origin that publishes the keys of a crawler in canonical form, see [canonical.Target]. The text
// may end in a slash.
func ParseAgent(text string) (string, error) {
	const example = "expected an https origin, such as https://bots.example.com"
	scheme, authority, _ := strings.Cut(text, "://")
	authority = strings.TrimSuffix(authority, "/")
	switch {
	case !strings.EqualFold(scheme, "https"):
		return "", fmt.Errorf("%s, got %.80q", example, text)
	case strings.ContainsFunc(authority, unicode.IsControl) || strings.ContainsAny(authority, ` "'\,;*%`):
		return "", fmt.Errorf("%s: %.80q has a character that no host has", example, text)
	case strings.Contains(authority, "@"):
		return "", errors.New(example + ": leave out the user") // the text may hold a password
	case strings.ContainsAny(authority, "/?#"):
		return "", fmt.Errorf("%s: leave out the path, and what follows it, of %.80q; the keys are at /.well-known/http-message-signatures-directory there", example, text)
	case strings.HasSuffix(authority, ":"):
		return "", errors.New(example + ": the port is missing after the colon")
	}
	t, err := canonical.ParseTarget("https", authority, "/")
	if err != nil {
		return "", fmt.Errorf("%s: %w", example, err)
	}
	return t.Origin(), nil
}

// An Agent is an https origin that publishes the keys of one or several crawlers.
type Agent struct {
	Origin string // in canonical form, see [ParseAgent]
	Keys   []*Key // each once, in the order of the crawlers
}

// Authority returns the host of the agent, with its port unless that is 443.
func (a Agent) Authority() string { return strings.TrimPrefix(a.Origin, "https://") }

// Add adds the key and the agent of a crawler to agents, if its requests are signed.
func (c *Config) Add(agents []Agent) []Agent {
	if c.key == nil {
		return agents
	}
	i := slices.IndexFunc(agents, func(a Agent) bool { return a.Origin == c.Agent })
	if i < 0 {
		i = len(agents)
		agents = append(agents, Agent{Origin: c.Agent})
	}
	agents[i].Keys = Unique(append(agents[i].Keys, c.key))
	return agents
}
