package vault

// RewrapBatch is how many keys of runs one transaction wraps anew.
const RewrapBatch = rewrapBatch

// CrashAt has the vault tell of every instant a rotation may die at.
func (v *Vault) CrashAt(fn func(instant string)) { v.crash = fn }
