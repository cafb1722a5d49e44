package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"countersign/internal/id"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// baseOf is what an idempotency key is made of, but for the generation: the
// tenant, the tool, the business key (else the run, the step and the pass)
// and the tool's semantic version (DESIGN section 6).
func baseOf(tenant string, run id.Run, path string, pass int, tool *tools.Tool, business string) string {
	who := []any{"run", run, path, pass}
	if business != "" {
		who = []any{"key", business}
	}
	return hashOf("countersign.key/1", tenant, tool.Name, tool.SemanticVersion, who)
}

// keyOf is the idempotency key: it fits any header and any file name.
func keyOf(base string, generation int) string {
	return "cs_" + hashOf(base, generation)[:48]
}

// readKey is the key of a read step's calls: the same for every try of a pass,
// so that a target may recognise the one call a crash repeats.
func readKey(tenant string, run id.Run, path string, pass int) string {
	return "cs_" + hashOf("countersign.read/1", tenant, run, path, pass)[:48]
}

// hashOf hashes the JSON list of its arguments, which keeps them apart.
func hashOf(parts ...any) string {
	b, err := json.Marshal(parts)
	if err != nil {
		panic("engine: hash of what cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// KeyFor is the idempotency key that a revision of the action with this frozen
// request has. It is the key of the action, unless another request was tried
// under it and is known not to have happened: then the generation grows.
func (e *Engine) KeyFor(ctx context.Context, q store.Querier, tenant string, action id.Action, request tools.Frozen) (string, error) {
	eff, err := lastEffect(ctx, q, "tenant = $1 AND action = $2", tenant, string(action))
	if err != nil {
		return "", fmt.Errorf("key of action %s: %w", action, err)
	}
	if eff.Status == NotDone && eff.RequestDigest != digestOf(request) {
		return keyOf(eff.base, eff.Generation+1), nil
	}
	return eff.Key, nil
}
