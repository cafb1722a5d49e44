package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"countersign/internal/problem"
)

// key names a migration.
type key struct {
	line    string
	version int
}

// step is a migration the program knows.
type step struct {
	key
	name, text, sum string
}

func (s step) String() string { return fmt.Sprintf("%s/%04d_%s", s.line, s.version, s.name) }

// point is a fault point of the migration.
func (s step) point(stage string) string {
	return fmt.Sprintf("migrate:%s:%04d:%s", s.line, s.version, stage)
}

var fileName = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.sql$`)

// readLines reads the migrations of all lines. Names must be told apart and
// numbers must run from 1 without a gap.
func readLines(lines []Line) ([]step, error) {
	var steps []step
	seen := make(map[string]bool)
	for _, l := range lines {
		if l.Name == "" || seen[l.Name] {
			return nil, fmt.Errorf("migration line %q has no name or that of another", l.Name)
		}
		seen[l.Name] = true
		more, err := readLine(l)
		if err != nil {
			return nil, fmt.Errorf("migration line %s: %w", l.Name, err)
		}
		steps = append(steps, more...)
	}
	return steps, nil
}

func readLine(l Line) ([]step, error) {
	dir := path.Clean("./" + l.Dir)
	entries, err := fs.ReadDir(l.FS, dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var steps []step
	for _, e := range entries {
		if path.Ext(e.Name()) != ".sql" {
			continue
		}
		m := fileName.FindStringSubmatch(e.Name())
		if m == nil {
			return nil, fmt.Errorf("%s is not named NNNN_name.sql in lower case", e.Name())
		}
		version, _ := strconv.Atoi(m[1]) // four digits
		if version != len(steps)+1 {
			return nil, fmt.Errorf("%s comes where number %04d belongs", e.Name(), len(steps)+1)
		}
		text, err := fs.ReadFile(l.FS, path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		steps = append(steps, step{key{l.Name, version}, m[2], string(text), hex.EncodeToString(sum[:])})
	}
	if len(steps) == 0 {
		return nil, errors.New("it has no migration")
	}
	return steps, nil
}

// plan compares what the program knows with what the database has and
// returns what is due, in order.
func plan(dbPath string, steps []step, done map[key]row) (due []step, err error) {
	known := make(map[key]bool)
	missing := make(map[string]int) // first version of the line the database lacks
	for _, s := range steps {
		known[s.key] = true
		had, ok := done[s.key]
		switch {
		case !ok:
			if missing[s.line] == 0 {
				missing[s.line] = s.version
			}
			due = append(due, s)
		case had.sum != s.sum:
			return nil, fmt.Errorf("migration %s was changed after it was applied at %s (sha256 %.12s then, %.12s now); restore the file, and put the change into a new one",
				s, had.at.Format("2006-01-02"), had.sum, s.sum)
		case missing[s.line] != 0:
			return nil, fmt.Errorf("the database has migration %s but lacks %04d before it; restore a backup", s, missing[s.line])
		}
	}
	for k, r := range done {
		if !known[k] {
			return nil, newer(dbPath, k, r)
		}
	}
	return due, nil
}

// newer is ErrNewer with what to do.
func newer(dbPath string, k key, r row) error {
	copies, _ := filepath.Glob(globEscape(dbPath) + ".before-*")
	advice := "There is no copy from before the upgrade beside it."
	if len(copies) > 0 {
		slices.Sort(copies)
		advice = fmt.Sprintf("Or put back the copy from before the upgrade (what was done since is not in it): %s.", copies)
	}
	return problem.New(problem.Unavailable, ErrNewer.(*problem.Error).Code,
		"The database %s was written by a newer program: it has the migration %s/%04d_%s, which this one does not know. Start the newer program. %s",
		dbPath, k.line, k.version, r.name, advice)
}

var globMeta = regexp.MustCompile(`[\\*?\[]`)

func globEscape(s string) string { return globMeta.ReplaceAllString(s, `\$0`) }
