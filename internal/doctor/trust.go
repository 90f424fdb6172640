package doctor

import (
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"

	"robotsgate/internal/ca"
	"robotsgate/internal/clientenv"
	"robotsgate/internal/escape"
)

// trustVariables checks that the files that variables name hold the gate's CA, and other roots
// too where a client trusts nothing but the file. Without a running gate it looks for the CA of
// the configuration. The advice says how to set the variables.
func (e *diagnosis) trustVariables(advice []string) finding {
	if !e.config.HTTPS.Intercept {
		return finding{"trust", passed, "https is not intercepted, so that clients need no CA", nil}
	}
	wanted := []*x509.Certificate{e.gate.signer}
	if e.gate.url == "" {
		data, _ := os.ReadFile(e.certFile())
		wanted = certificatesIn(data)
	}
	var faults []string
	names := map[string][]string{} // of variables, by their fault
	set := 0
	for _, v := range clientenv.For("", ca.ClientFiles{Cert: "ca", Bundle: "bundle", Wgetrc: "wgetrc"}) {
		file := os.Getenv(v.Name)
		if file == "" || !slices.Contains([]string{"ca", "bundle", "wgetrc"}, v.Value) {
			continue
		}
		set++
		if fault := trustFault(file, v.Value, wanted); fault != "" {
			fault = escape.Printable(file) + ", which " + fault
			if names[fault] == nil {
				faults = append(faults, fault)
			}
			names[fault] = append(names[fault], v.Name)
		}
	}
	var wrong []string
	for _, fault := range faults {
		verb := " names "
		if len(names[fault]) > 1 {
			verb = " name "
		}
		wrong = append(wrong, strings.Join(names[fault], ", ")+verb+fault)
	}
	switch {
	case len(wrong) > 0:
		return fault("trust", wrong[0], append(wrong[1:], advice...)...)
	case set == 0:
		return fault("trust", "no variable names a file with the CA", advice...)
	case len(wanted) == 0:
		return finding{"trust", unknown, "no gate runs and there is no " + e.certFile() + ", so which CA the files must hold is not known", nil}
	}
	return finding{"trust", passed, "the files that variables name hold the CA", nil}
}

// trustFault says what is wrong with the file of a variable: one that clients add to their roots
// ("ca"), one that replaces them ("bundle"), or one that names such a file ("wgetrc"). Without
// wanted certificates any will do. It returns "" if nothing is wrong.
func trustFault(file, use string, wanted []*x509.Certificate) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return "can't be read"
	}
	if use == "wgetrc" {
		bundle := wgetCertificates(data)
		if bundle == "" {
			return "has no line with ca_certificate"
		}
		if fault := trustFault(bundle, "bundle", wanted); fault != "" {
			return fmt.Sprintf("names %s, which %s", escape.Printable(bundle), fault)
		}
		return ""
	}
	all := certificatesIn(data)
	isWanted := func(c *x509.Certificate) bool { return slices.ContainsFunc(wanted, c.Equal) }
	switch {
	case len(wanted) > 0 && !slices.ContainsFunc(all, isWanted):
		return "does not hold the gate's CA"
	case len(all) == 0:
		return "holds no certificate"
	case use == "bundle" && len(slices.DeleteFunc(all, isWanted)) == 0:
		return "holds the gate's CA alone: its clients trust no host that is reached without interception"
	}
	return ""
}

// wgetCertificates returns the value of the last line with ca_certificate. Wget ignores case,
// dashes and underscores in names.
func wgetCertificates(wgetrc []byte) (file string) {
	for line := range strings.Lines(string(wgetrc)) {
		name, value, _ := strings.Cut(line, "=")
		name = strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(strings.TrimSpace(name)))
		if name == "cacertificate" {
			file = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return file
}
