package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"robotsgate/internal/keyfile"
	"robotsgate/policy"
)

// Keys makes keys for signed requests, and prints the directory that publishes them.
type Keys struct {
	Agent   string   `placeholder:"URL" help:"The https origin that publishes the directory; without one, that of the crawlers."`
	Headers bool     `help:"Print the header lines for the directory in place of the directory."`
	Files   []string `arg:"" optional:"" name:"KEYFILE" help:"Key files to publish too; or new FILE, to make a key in FILE."`
}

// Run makes a key if the first argument is "new".
func (k *Keys) Run(s Streams) error {
	if len(k.Files) > 0 && k.Files[0] == "new" {
		return k.create(s, k.Files[1:])
	}
	keys, authority, err := k.published(s)
	if err != nil {
		return err
	}
	if !k.Headers {
		// Without an end of line: the digest in the header lines covers every byte.
		_, err = s.Out.Write(keyfile.Directory(keys))
		return err
	}
	for _, h := range keyfile.Headers(keys, authority, time.Now()) {
		if _, err := fmt.Fprintf(s.Out, "%s: %s\n", h.Name, h.Value); err != nil {
			return err
		}
	}
	return nil
}

// create makes a key and prints its id.
func (k *Keys) create(s Streams, files []string) error {
	if len(files) != 1 || k.Agent != "" || k.Headers {
		return errors.New("keys new takes one file and no options: robotsgate keys new news-key.pem; a file that is called new is ./new")
	}
	key, err := keyfile.Create(files[0])
	if errors.Is(err, fs.ErrExist) {
		s.note("%s: there is a file or a link already, which keys new does not overwrite: name another file", files[0])
		return Exit(1)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, key.ID())
	return err
}

// published returns the keys to publish, and the authority of the agent that publishes them.
func (k *Keys) published(s Streams) (keys []*keyfile.Key, authority string, err error) {
	if len(k.Files) == 0 {
		return nil, "", errors.New("which keys? robotsgate keys news-key.pem; robotsgate keys new FILE makes one")
	}
	if k.Agent != "" {
		if authority, err = agentAuthority(k.Agent); err != nil {
			return nil, "", fmt.Errorf("--agent: %w", err)
		}
	}
	if k.Headers && authority == "" {
		return nil, "", errors.New("--headers needs the origin that publishes the directory: --agent https://bots.example.com")
	}
	var errs []error
	for _, file := range k.Files {
		key, err := keyfile.Load(file)
		errs = append(errs, err)
		keys = append(keys, key)
		if mode, exposed := keyfile.Exposed(file); exposed {
			s.warn("%s: the group or others may read it (mode %04o): chmod 600 %s", file, mode, file)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, "", err
	}
	return keyfile.Unique(keys), authority, nil
}

// agentAuthority returns the authority of an agent's URL.
func agentAuthority(text string) (string, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	rest = strings.TrimSuffix(rest, "/")
	t, err := policy.ParseTarget(scheme, rest, "/")
	if err != nil || t.Scheme != "https" || strings.ContainsAny(rest, "/?#@") {
		return "", fmt.Errorf("expected an https origin, such as https://bots.example.com, got %q", text)
	}
	return t.Host, nil
}
