package proxy

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A npmPackage is what a registry of npm says about a package.
type npmPackage struct {
	Name        string                       `json:"name"`
	Description string                       `json:"description"`
	Tags        map[string]string            `json:"dist-tags"`
	Versions    map[string]npmPackageVersion `json:"versions"`
}

type npmPackageVersion struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	Deprecated  string            `json:"deprecated"`
	Dist        map[string]string `json:"dist"`
}

// asPackage returns the page /crawler as a package of npm with this name. npm, pnpm and yarn can
// show the description of a package, or why it is deprecated, but not a text, and so robotsgate
// doctor can try them. There is no archive: nothing can be installed.
func asPackage(text string) (page bytes.Buffer) {
	const name, version = "crawler", "1.0.0"
	_ = json.NewEncoder(&page).Encode(npmPackage{ // strings can be encoded
		Name: name, Description: text, Tags: map[string]string{"latest": version},
		Versions: map[string]npmPackageVersion{version: {
			Name: name, Version: version, Description: text, Deprecated: text,
			Dist: map[string]string{"tarball": "http://" + ownName + "/none.tgz", "shasum": strings.Repeat("0", 40)},
		}},
	})
	return page
}
