package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"countersign/internal/expr"
)

func (c *execCode) resolve(params json.RawMessage, vars map[string]any) (*Request, error) {
	r := &Request{Transport: Exec, TimeoutMS: c.spec.Timeout.Duration().Milliseconds(), Env: map[string]Parts{}, Stdin: params}
	free := c.spec.AllowDash
	for i, t := range c.argv {
		p, err := parts(t, vars, func(_ int, v any) (string, error) { return plain(v) })
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
		if slices.ContainsFunc(p, func(x Part) bool { return x.Sealed != "" }) {
			return nil, fmt.Errorf("argument %d: holds a sensitive value, which every program on the machine could read there; pass it on standard input or in env", i)
		}
		arg := p.String()
		declared := t == nil || t.Parts[0].Kind == expr.Literal
		switch {
		case strings.ContainsRune(arg, 0):
			return nil, fmt.Errorf("argument %d: holds a null character", i)
		case i > 0 && strings.HasPrefix(arg, "-") && !declared && !free:
			return nil, fmt.Errorf("argument %d: %q would be read as an option", i, arg)
		}
		free = free || i > 0 && t != nil && literal(t) && arg == "--"
		r.Argv = append(r.Argv, arg)
	}
	if err := checkProgram(r.Argv[0]); err != nil {
		return nil, err
	}
	var err error
	for name, t := range c.env {
		if r.Env[name], err = parts(t, vars, func(_ int, v any) (string, error) { return plain(v) }); err != nil {
			return nil, fmt.Errorf("the variable %s: %w", name, err)
		}
		if strings.ContainsRune(r.Env[name].String(), 0) {
			return nil, fmt.Errorf("the variable %s: holds a null character", name)
		}
	}
	if r.Dir, err = folder(c.dir, vars, "/"); err != nil {
		return nil, fmt.Errorf("dir: %w", err)
	}
	return r, nil
}

func checkProgram(name string) error {
	if name == "" || strings.Contains(name, "/") && name[0] != '/' || name[0] == '-' {
		return fmt.Errorf("the program %q is neither an absolute path nor a bare name", name)
	}
	return nil
}

// folder resolves an absolute folder.
func folder(t *expr.Text, vars map[string]any, otherwise string) (string, error) {
	if t == nil {
		return otherwise, nil
	}
	dir, err := t.Eval(context.Background(), vars, func(_ int, v any) (string, error) { return plain(v) })
	if err != nil {
		return "", err
	}
	return dir, checkRoot(dir)
}

func (c *fileCode) resolve(vars map[string]any) (*Request, error) {
	r := &Request{Transport: File, TimeoutMS: c.spec.Timeout.Duration().Milliseconds()}
	var err error
	if r.Root, err = folder(c.root, vars, ""); err != nil {
		return nil, fmt.Errorf("root: %w", err)
	}
	one := func(_ int, v any) (string, error) { return plain(v) }
	if c.spec.Collect != nil {
		s := *c.spec.Collect
		if s.Folder, err = c.folder.Eval(context.Background(), vars, one); err != nil {
			return nil, fmt.Errorf("folder: %w", err)
		}
		r.Collect = &s
		return r, checkFolder(s.Folder)
	}
	if r.Path, err = c.path.Eval(context.Background(), vars, one); err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	if err := checkPath(r.Path); err != nil {
		return nil, err
	}
	content := ""
	if c.content != nil {
		if content, err = c.content.Eval(context.Background(), vars, nil); err != nil {
			return nil, fmt.Errorf("content: %w", err)
		}
	}
	if len(content) > FileBytesMax {
		return nil, fmt.Errorf("the content is %d bytes long; the limit is %d", len(content), FileBytesMax)
	}
	r.Content = &content
	return r, nil
}
