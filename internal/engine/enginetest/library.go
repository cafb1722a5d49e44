package enginetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"countersign/internal/engine"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// Library holds definitions compiled from YAML.
type Library struct {
	mu        sync.Mutex
	tools     map[string]*tools.Tool // by name
	byDigest  map[string]*tools.Tool
	workflows map[string]*workflow.Workflow // by digest
}

var _ engine.Library = (*Library)(nil)

// NewLibrary compiles the tools.
func NewLibrary(t testing.TB, sources ...string) *Library {
	t.Helper()
	l := &Library{tools: map[string]*tools.Tool{}, byDigest: map[string]*tools.Tool{}, workflows: map[string]*workflow.Workflow{}}
	for i, src := range sources {
		tool := compiled(t, &toolCache, src, func() (*tools.Tool, error) { return tools.Compile(fmt.Sprintf("tool%d.yaml", i), []byte(src)) })
		l.tools[tool.Name], l.byDigest[tool.Digest] = tool, tool
	}
	return l
}

// Compiled definitions are immutable, so all tests of a process share them.
var toolCache, workflowCache sync.Map

func compiled[T any](t testing.TB, cache *sync.Map, key string, compile func() (T, error)) T {
	t.Helper()
	if v, ok := cache.Load(key); ok {
		return v.(T)
	}
	v, err := compile()
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	cache.Store(key, v)
	return v
}

// Add compiles a workflow.
func (l *Library) Add(t testing.TB, src string) *workflow.Workflow {
	t.Helper()
	w := compiled(t, &workflowCache, src+fmt.Sprint(l.Digests()), func() (*workflow.Workflow, error) {
		return workflow.Compile("workflow.yaml", []byte(src), catalog{l})
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workflows[w.Digest] = w
	return w
}

// Forget removes a definition, by digest.
func (l *Library) Forget(digest string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.workflows, digest)
	delete(l.byDigest, digest)
}

// Keep puts a workflow back.
func (l *Library) Keep(w *workflow.Workflow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workflows[w.Digest] = w
}

// Digests are the tool versions a run is started with.
func (l *Library) Digests() map[string]string {
	out := map[string]string{}
	for name, t := range l.tools {
		out[name] = t.Digest
	}
	return out
}

// catalog is how the workflow compiler sees the library.
type catalog struct{ l *Library }

func (c catalog) Tool(name string) (workflow.ToolInfo, bool) {
	t, ok := c.l.tools[name]
	if !ok {
		return workflow.ToolInfo{}, false
	}
	return workflow.ToolInfo{Name: t.Name, Version: t.Version, Digest: t.Digest, Write: t.Write, Params: t.Params(), Risk: t.Risk}, true
}

func (c catalog) ToolNames() []string { return slices.Sorted(maps.Keys(c.l.tools)) }

// Workflow finds a workflow by digest.
func (l *Library) Workflow(_ context.Context, _ store.Querier, _, digest string) (*workflow.Workflow, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.workflows[digest]; w != nil {
		return w, nil
	}
	return nil, fmt.Errorf("workflow %s: %w", digest, store.ErrNotFound)
}

// Tool finds a tool by digest.
func (l *Library) Tool(_ context.Context, _ store.Querier, _, digest string) (*tools.Tool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.byDigest[digest]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("tool %s: %w", digest, store.ErrNotFound)
}

// ByName finds a tool by name; the test fails if there is none.
func (l *Library) ByName(t testing.TB, name string) *tools.Tool {
	t.Helper()
	tool := l.tools[name]
	if tool == nil {
		t.Fatalf("no tool %s", name)
	}
	return tool
}
