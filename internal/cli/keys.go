package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"robotsgate/internal/console"
	"robotsgate/internal/keyfile"
)

// Keys makes keys for signed requests, and prints the directory that publishes them.
type Keys struct {
	Configured
	Agent   string   `placeholder:"URL" help:"The https origin that publishes the directory; without one, that of the crawlers."`
	Headers bool     `help:"Print the header lines for the directory in place of the directory."`
	Files   []string `arg:"" optional:"" name:"KEYFILE" help:"Key files to publish too; or new FILE, to make a key in FILE."`
}

// Run makes a key if the first argument is "new".
func (k *Keys) Run(s console.Streams) error {
	if len(k.Files) > 0 && k.Files[0] == "new" {
		return k.create(s, k.Files[1:])
	}
	keys, authority, err := k.published()
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
func (k *Keys) create(s console.Streams, files []string) error {
	if len(files) != 1 || k.Config != "" || k.Agent != "" || k.Headers {
		return errors.New("keys new takes one file and no options: robotsgate keys new news-key.pem; a file that is called new is ./new")
	}
	key, err := keyfile.Create(files[0])
	if errors.Is(err, fs.ErrExist) {
		s.Note("%s: there is a file or a link already, which keys new does not overwrite: name another file", files[0])
		return console.Exit(1)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, key.ID())
	return err
}

// published returns the keys to publish, each once, and the authority of the agent that publishes
// them; "" if it is not known.
func (k *Keys) published() (keys []*keyfile.Key, authority string, err error) {
	var agent keyfile.Agent
	if k.Agent != "" {
		if agent.Origin, err = keyfile.ParseAgent(k.Agent); err != nil {
			return nil, "", fmt.Errorf("--agent: %w", err)
		}
	}
	if k.Config != "" {
		if agent, err = k.agent(agent.Origin); err != nil {
			return nil, "", err
		}
	} else if len(k.Files) == 0 {
		return nil, "", errors.New("which keys? name key files, or a configuration: robotsgate keys -c gate.yaml; robotsgate keys new FILE makes a key")
	}
	if k.Headers && agent.Origin == "" {
		return nil, "", errors.New("--headers needs the origin that publishes the directory: --agent https://bots.example.com, or -c with the configuration that has it")
	}
	if keys, err = loadKeys(k.Files); err != nil {
		return nil, "", err
	}
	return keyfile.Unique(append(agent.Keys, keys...)), agent.Authority(), nil
}

// agent returns the agent of the configuration with an origin; "" chooses the only one.
func (k *Keys) agent(origin string) (keyfile.Agent, error) {
	c, err := k.load()
	if err != nil {
		return keyfile.Agent{}, err
	}
	agents := c.Agents()
	var origins []string
	for _, a := range agents {
		if a.Origin == origin || origin == "" && len(agents) == 1 {
			return a, nil
		}
		origins = append(origins, a.Origin)
	}
	list := strings.Join(origins, ", ")
	switch {
	case len(agents) == 0 && len(k.Files) > 0:
		return keyfile.Agent{Origin: origin}, nil
	case len(agents) == 0:
		return keyfile.Agent{}, fmt.Errorf("%s: no crawler has sign, so there are no keys to publish: add sign to one, with key_file and agent", k.Config)
	case origin == "":
		return keyfile.Agent{}, fmt.Errorf("%s: the crawlers have several agents, and each publishes its own keys: choose one with --agent: %s", k.Config, list)
	}
	return keyfile.Agent{}, fmt.Errorf("--agent: no crawler of %s has the agent %s; there are: %s", k.Config, origin, list)
}

// loadKeys reads key files. It reports the mistakes of all of them.
func loadKeys(files []string) (keys []*keyfile.Key, err error) {
	var errs []error
	for _, file := range files {
		key, err := keyfile.Load(file)
		errs = append(errs, err)
		keys = append(keys, key)
	}
	return keys, errors.Join(errs...)
}
