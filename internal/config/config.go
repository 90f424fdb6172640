// Package config reads the gate's configuration: strict YAML, with every mistake
// reported at once, each with its line. Start with [Load] and [Config].
//
// The package knows which keys there are and which values they may have. internal/settings
// translates them into the settings of the other packages.
package config

import (
	"log/slog"
	"time"

	"robotsgate/internal/admin"
	"robotsgate/internal/audit"
	"robotsgate/internal/ca"
	"robotsgate/internal/fleet"
	"robotsgate/internal/keyfile"
	"robotsgate/internal/requestlog"
	"robotsgate/internal/store"
	"robotsgate/policy"
	"robotsgate/policy/pace"
	"robotsgate/proxy"
)

// Config is the whole configuration, checked and ready for use. The tags of its fields,
// and of the sections' fields, describe the keys of the file:
//
//   - yaml: the name of the key
//   - doc: completes "expected …" in a mistake; "such as …" in it is an example
//   - enum: the values that are allowed
//   - positive: the value must be more than zero
//   - zero: the meaning of the value 0
//   - size: the number is one of bytes, with a unit
//   - path: a relative path starts at the file's folder; "or -": - is no path
//   - restart: the key takes effect at start only, see [Config.Restrain]
//   - secret: mistakes do not repeat the value, which may be a password
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
	Egress            Egress            `yaml:"egress"`
	Pace              pace.Config       `yaml:"pace"`
	Fleet             fleet.Config      `yaml:"fleet"`
	Limits            Limits            `yaml:"limits"`
	Admin             admin.Config      `yaml:"admin"`
	Log               Log               `yaml:"log"`

	source source
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
	policy.Crawler `yaml:",inline"`
	Sign           keyfile.Config `yaml:"sign"` // without a Key: requests are not signed
}

// SetDefaults gives an item of crawlers its defaults.
func (k *Crawler) SetDefaults() {
	*k = Crawler{policy.DefaultCrawler(), keyfile.Default()}
	k.Name = "" // is required
}

// Robots says how robots.txt is fetched, kept and read.
type Robots struct {
	policy.Robots `yaml:",inline"`
	store.Limits  `yaml:",inline"`
}

// Tags says how robots tags are collected from responses.
type Tags struct {
	proxy.Tags `yaml:",inline"`
	CacheBytes int64 `yaml:"cache_bytes" size:"yes" restart:"yes" positive:"yes"`
}

// HTTPS says whether and with which CA the gate looks into TLS.
type HTTPS struct {
	proxy.HTTPS `yaml:",inline"`
	ca.Config   `yaml:",inline"`
}

// Egress says where the gate may connect to, and how.
type Egress struct {
	proxy.Egress `yaml:",inline"`
	CAFile       string `yaml:"ca_file" doc:"a PEM file, such as /etc/ssl/company-ca.pem" path:"yes"` // "": the system's roots only
}

// Limits bounds what clients may ask of the gate, and the gate's memory and time.
type Limits struct {
	proxy.Limits           `yaml:",inline"`
	proxy.ConnectionLimits `yaml:",inline"`
	Memory                 int64         `yaml:"memory" size:"yes" restart:"yes" zero:"no limit"` // 0: no limit
	ShutdownDelay          time.Duration `yaml:"shutdown_delay"`
	ShutdownGrace          time.Duration `yaml:"shutdown_grace"`
}

// Log says what is written down, and where.
type Log struct {
	Level    slog.Level          `yaml:"level" enum:"debug,info,warn,error"`
	Format   string              `yaml:"format" restart:"yes" enum:"text,json"`
	Requests requestlog.Requests `yaml:"requests" enum:"none,refused,all"`
	Audit    audit.Config        `yaml:",inline"`
}
