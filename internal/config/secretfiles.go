package config

import (
	"slices"
	"strings"
)

// SecretFiles returns the files with private and secret keys that the configuration names, and its own file
// if that has passwords, or names variables with them.
func (c *Config) SecretFiles() []string {
	files := []string{c.HTTPS.CAKey, c.Log.Audit.KeyFile, c.Fleet.KeyFile}
	for _, k := range c.Crawlers {
		files = append(files, k.Sign.KeyFile)
	}
	if c.hasPassword() {
		files = append(files, c.File())
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

func (c *Config) hasPassword() bool {
	login := func(k Crawler) bool { return k.Login.Hash != "" }
	proxy := c.source.Given("egress.proxy") && c.Egress.Parent != nil && c.Egress.Parent.User != nil // run may have set it
	return slices.ContainsFunc(c.Crawlers, login) || proxy || strings.Contains(string(c.Fleet.Address), "@")
}
