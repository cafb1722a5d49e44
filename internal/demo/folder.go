package demo

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"countersign/examples"
	"countersign/internal/instance"
)

// Names inside the data folder.
const (
	standInsFolder = "stand-ins"
	tokenFile      = "shop-token"
)

// folder is the prepared data folder.
type folder struct {
	dir       string // absolute
	documents string
	shopToken string
}

// prepare makes the folder with the sample files that are not there yet: what
// somebody changed since the last start stays. The shop's token is a new one
// each time.
func prepare(dir, documents string) (f folder, err error) {
	if f.dir, err = filepath.Abs(dir); err != nil {
		return f, fmt.Errorf("find the data folder: %w", err)
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return f, fmt.Errorf("make the data folder: %w", err)
	}
	parts := []string{"workflows", "tools", "policies", "kb"}
	f.documents = filepath.Join(f.dir, "documents")
	if documents == "" {
		parts = append(parts, "documents")
	} else if f.documents, err = ownDocuments(documents); err != nil {
		return f, err
	}
	for _, part := range parts {
		if err := writeOut(f.dir, part); err != nil {
			return f, fmt.Errorf("write out the samples: %w", err)
		}
	}
	f.shopToken = rand.Text()
	if err := os.WriteFile(filepath.Join(f.dir, tokenFile), []byte(f.shopToken+"\n"), 0o600); err != nil {
		return f, fmt.Errorf("write the shop's token: %w", err)
	}
	return f, nil
}

func ownDocuments(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the documents: %w", err)
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return "", fmt.Errorf("there is no folder of documents at %s; leave --documents out for the sample ones", dir)
	}
	return abs, nil
}

// writeOut copies the part of the samples into dir, except files that exist.
func writeOut(dir, part string) error {
	return fs.WalkDir(examples.Files, part, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if entry.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		if _, err := os.Stat(to); err == nil {
			return nil
		}
		text, err := fs.ReadFile(examples.Files, name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	})
}

// config is the configuration of an instance over the folder and the
// stand-ins at the address world.
func (f folder) config(world, console string) instance.Config {
	in := func(name string) string { return filepath.Join(f.dir, name) }
	c := instance.Config{
		Workflows: in("workflows"), Tools: in("tools"), Policies: in("policies"),
		Values: map[string]string{"planner": world + "/planner", "shop": world + "/shop", "documents": f.documents,
			"kb": in("kb"), "stand_ins": in(standInsFolder)},
		Secrets: map[string]instance.Secret{"SHOP_TOKEN": {File: in(tokenFile)}},
		Allow:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	}
	if console != "" {
		c.Values["console"] = console
	}
	return c
}
