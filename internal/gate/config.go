package gate

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"robotsgate/internal/admin"
	"robotsgate/internal/audit"
	"robotsgate/internal/ca"
	"robotsgate/internal/config"
	"robotsgate/internal/field"
	"robotsgate/internal/fleet"
	"robotsgate/internal/keyfile"
	"robotsgate/internal/requestlog"
	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/pace"
	"robotsgate/proxy"
)

// Config is the whole configuration, checked and ready for use. Each part has the struct of its keys; here are those
// that belong to no part. See package config for the tags.
type Config struct {
	Listen string `yaml:"listen" restart:"yes" doc:"host:port, such as 127.0.0.1:9309"`
	// Transparent listens for connections that the network redirects to the gate. "": off
	ListenTransparent string            `yaml:"listen_transparent" restart:"yes" doc:"host:port, such as 127.0.0.1:9311"`
	DataDir           string            `yaml:"data_dir" restart:"yes" doc:"a folder, such as /var/lib/robotsgate" path:"yes"` // "": see [DataDir]
	Mode              policy.Mode       `yaml:"mode" enum:"enforce,report"`
	Crawlers          []Crawler         `yaml:"crawlers"` // see [Config.CrawlersOrDefault]
	UnknownClients    ClientsPolicy     `yaml:"unknown_clients" enum:"allow,refuse"`
	Overrides         []policy.Override `yaml:"overrides"`
	Robots            Robots            `yaml:"robots"`
	Tags              Tags              `yaml:"tags"`
	Usage             policy.Usage      `yaml:"usage"`
	HTTPS             HTTPS             `yaml:"https"`
	Egress            proxy.Egress      `yaml:"egress"`
	Pace              pace.Config       `yaml:"pace"`
	Fleet             fleet.Config      `yaml:"fleet"`
	Limits            Limits            `yaml:"limits"`
	Admin             admin.Config      `yaml:"admin"`
	Log               Log               `yaml:"log"`

	source *field.Mistakes
}

// ClientsPolicy says what becomes of clients that match no crawler.
type ClientsPolicy string

// The policies for unknown clients.
const (
	AllowClients  ClientsPolicy = "allow"
	RefuseClients ClientsPolicy = "refuse"
)

// A Crawler is a client of the gate. An empty Mode means the global one.
type Crawler struct {
	policy.Crawler
	Sign keyfile.Config `yaml:"sign"` // without a Key: requests are not signed
}

// SetDefaults gives an item of crawlers its defaults.
func (k *Crawler) SetDefaults() {
	*k = Crawler{policy.DefaultCrawler(), keyfile.Default()}
	k.Name = "" // is required
}

// Robots says how robots.txt is fetched, kept and read.
type Robots struct {
	policy.Robots
	store.Limits
}

// Tags says how robots tags are collected from responses.
type Tags struct {
	proxy.Tags
	CacheBytes int64 `yaml:"cache_bytes" restart:"yes" positive:"yes"`
}

// HTTPS says whether and with which CA the gate looks into TLS.
type HTTPS struct {
	proxy.HTTPS
	ca.Config
}

// Limits bounds what clients may ask of the gate, and the gate's memory and time.
type Limits struct {
	proxy.Limits
	proxy.LoadLimits
	Memory        int64         `yaml:"memory" restart:"yes"` // 0: no limit
	ShutdownDelay time.Duration `yaml:"shutdown_delay"`
	ShutdownGrace time.Duration `yaml:"shutdown_grace"`
}

// Audit has the keys of log that begin with audit.
type Audit = audit.Config

// CrawlDelay is a value of pace.crawl_delay.
type CrawlDelay = pace.CrawlDelay

// Log says what is written down, and where.
type Log struct {
	Level    slog.Level          `yaml:"level" enum:"debug,info,warn,error"`
	Format   string              `yaml:"format" restart:"yes" enum:"text,json"`
	Requests requestlog.Requests `yaml:"requests" enum:"none,refused,all"`
	Audit
}

// DefaultConfig returns the configuration with the default of every key.
func DefaultConfig() *Config {
	c := &Config{
		source: field.New(""),
		Listen: "127.0.0.1:9309", Mode: policy.Enforce, UnknownClients: AllowClients,
		Robots: Robots{policy.DefaultRobots(), store.DefaultLimits()},
		Tags:   Tags{proxy.DefaultTags(), 32 << 20},
		Usage:  policy.DefaultUsage(),
		HTTPS:  HTTPS{HTTPS: proxy.HTTPS{Intercept: true}},
		Egress: proxy.DefaultEgress(),
		Pace:   pace.Default(),
		Fleet:  fleet.Default(),
		Limits: Limits{Limits: proxy.DefaultLimits(), LoadLimits: proxy.LoadLimits{MaxConnections: proxy.DefaultMaxConnections, MaxRequests: proxy.DefaultMaxRequests}, ShutdownGrace: 30 * time.Second},
		Admin:  admin.Default(),
		Log:    Log{Format: "text", Requests: requestlog.None, Audit: audit.Default()},
	}
	c.Robots.CacheBytes = 256 << 20 // a gate has more origins than most users of package policy
	c.fillMemory()
	return c
}

// DefaultCrawler returns the crawler with the defaults of every item of crawlers. It
// stands for clients that match no crawler, too.
func DefaultCrawler() Crawler { return Crawler{policy.DefaultCrawler(), keyfile.Default()} }

// CrawlersOrDefault returns the configured crawlers, or else the default one, which
// matches every client.
func (c *Config) CrawlersOrDefault() []Crawler {
	if len(c.Crawlers) == 0 {
		return []Crawler{DefaultCrawler()}
	}
	return c.Crawlers
}

// LoadConfig reads and checks the configuration at path, with the variables of the
// process's environment. If the file has mistakes the error has a line for each.
func LoadConfig(path string) (*Config, error) {
	data, err := field.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ParseConfig(path, data, os.LookupEnv)
}

// ParseConfig reads and checks the configuration in data. Mistakes name the file name, and
// relative paths start at its folder. Lookup returns environment variables.
func ParseConfig(name string, data []byte, lookup func(string) (string, bool)) (*Config, error) {
	folder, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("the folder of %s: %w", name, err)
	}
	c := DefaultConfig()
	c.source = config.Decode(c, name, folder, data, lookup)
	c.check()
	if err := c.source.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// File returns the name of the file that the configuration is from; "" for the defaults.
func (c *Config) File() string { return c.source.File }

// ReadConfig is ParseConfig for what in has.
func ReadConfig(name string, in io.Reader, lookup func(string) (string, bool)) (*Config, error) {
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ParseConfig(name, data, lookup)
}

// KeptConfig reads what [Config.Effective] has written, to decide past requests again. It does
// not check the values, and the files that they name may be gone.
func KeptConfig(data []byte) (*Config, error) {
	c := DefaultConfig()
	c.Robots.Readings = policy.Literal // as before this key existed
	c.source = config.Decode(c, "configuration", "", data, func(string) (string, bool) { return "", false })
	if err := c.source.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Effective returns the configuration in force, see [config.Effective]. [KeptConfig] reads it.
func (c *Config) Effective() ([]byte, error) { return config.Effective(c) }

// Has reports whether the file of c has a key, such as log.level.
func (c *Config) Has(key string) bool { return c.source.Given(key) }
