package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// Store is the people of one database.
type Store struct{}

// New returns the store; it keeps nothing in memory.
func New() *Store { return &Store{} }

// Person is one person as others see them.
type Person struct {
	ID      id.Person `json:"id"`
	Email   string    `json:"email"`
	Name    string    `json:"name"`
	Roles   []string  `json:"roles"`
	Active  bool      `json:"active"`
	Created time.Time `json:"created_at"`
}

// NewPerson is what a person is added with.
type NewPerson struct {
	Tenant   string
	Email    string
	Name     string
	Password string
	Roles    []string
}

const sqlAddPerson = `INSERT INTO person (id, email, name, password, disabled_at, created_at) VALUES ($1, $2, $3, $4, NULL, $5)`

// Prepare checks what can be checked before a transaction, and hashes the
// password there, since hashing takes tens of milliseconds.
func (n NewPerson) Prepare() (Prepared, error) {
	var err error
	if n.Email, err = normalEmail(n.Email); err != nil {
		return Prepared{}, err
	}
	if n.Name, err = normalName(n.Name); err != nil {
		return Prepared{}, err
	}
	if err := checkPassword(n.Password, n.Email); err != nil {
		return Prepared{}, err
	}
	for _, r := range n.Roles {
		if err := checkRole(r); err != nil {
			return Prepared{}, err
		}
	}
	hash, err := hashPassword(n.Password)
	n.Password = ""
	return Prepared{person: n, hash: hash}, err
}

// Prepared is a checked person whose password is hashed.
type Prepared struct {
	person NewPerson
	hash   string
}

// Add stores a prepared person. Problem: email_taken.
func (s *Store) Add(ctx context.Context, tx *store.Tx, n Prepared) (Person, error) {
	p := Person{ID: id.NewPerson(tx.Now()), Email: n.person.Email, Name: n.person.Name, Active: true, Created: tx.Now()}
	_, err := tx.Exec(ctx, sqlAddPerson, string(p.ID), p.Email, p.Name, n.hash, store.Micros(tx.Now()))
	if store.IsUnique(err) {
		return Person{}, problem.New(problem.Conflict, "email_taken", "Somebody with the address %s is here already.", p.Email)
	}
	if err != nil {
		return Person{}, fmt.Errorf("add person: %w", err)
	}
	p.Roles, err = s.SetRoles(ctx, tx, n.person.Tenant, p.ID, n.person.Roles)
	return p, err
}

const (
	sqlRoles      = `SELECT role FROM role_member WHERE tenant = $1 AND person = $2 ORDER BY role`
	sqlClearRoles = `DELETE FROM role_member WHERE tenant = $1 AND person = $2`
	sqlAddRole    = `INSERT INTO role_member (tenant, person, role) VALUES ($1, $2, $3)`
)

// SetRoles replaces the roles of a person and returns them sorted. Problems:
// invalid, not_found.
func (s *Store) SetRoles(ctx context.Context, tx *store.Tx, tenant string, p id.Person, roles []string) ([]string, error) {
	roles = slices.Clone(roles)
	slices.Sort(roles)
	roles = slices.Compact(roles)
	if len(roles) > rolesMax {
		return nil, problem.New(problem.Invalid, "invalid", "A person has at most %d roles.", rolesMax).At("/roles", "has %d", len(roles))
	}
	for _, r := range roles {
		if err := checkRole(r); err != nil {
			return nil, err
		}
	}
	if err := s.exists(ctx, tx, p); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, sqlClearRoles, tenant, string(p)); err != nil {
		return nil, fmt.Errorf("set roles: %w", err)
	}
	for _, r := range roles {
		if _, err := tx.Exec(ctx, sqlAddRole, tenant, string(p), r); err != nil {
			return nil, fmt.Errorf("set roles: %w", err)
		}
	}
	return roles, nil
}

const (
	sqlDisable     = `UPDATE person SET disabled_at = $2 WHERE id = $1 AND disabled_at IS NULL`
	sqlEnable      = `UPDATE person SET disabled_at = NULL WHERE id = $1`
	sqlEndSessions = `DELETE FROM session WHERE person = $1`
	sqlEndTokens   = `UPDATE token SET revoked_at = $2 WHERE owner = $1 AND revoked_at IS NULL`
	sqlEndPersonal = `UPDATE token SET revoked_at = $2 WHERE owner = $1 AND personal = 1 AND revoked_at IS NULL`
)

// Disable ends a person's sessions and tokens and refuses new ones; what they
// did stays theirs. Disabling twice is no error. Problem: not_found.
func (s *Store) Disable(ctx context.Context, tx *store.Tx, p id.Person) error {
	now := store.Micros(tx.Now())
	if err := s.exists(ctx, tx, p); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlDisable, string(p), now); err != nil {
		return fmt.Errorf("disable person: %w", err)
	}
	if _, err := tx.Exec(ctx, sqlEndSessions, string(p)); err != nil {
		return fmt.Errorf("end sessions: %w", err)
	}
	_, err := tx.Exec(ctx, sqlEndTokens, string(p), now)
	return err
}

// exists returns the problem not_found unless the person is there.
func (s *Store) exists(ctx context.Context, q store.Querier, p id.Person) error {
	var there int
	err := q.QueryRow(ctx, `SELECT count(*) FROM person WHERE id = $1`, string(p)).Scan(&there)
	if err == nil && there == 0 {
		return errNobody
	}
	return err
}

// errNobody is the answer about somebody who is not here.
var errNobody = problem.New(problem.NotFound, "not_found", "There is no such person here.")

// Enable lets a disabled person sign in again. Problem: not_found.
func (s *Store) Enable(ctx context.Context, tx *store.Tx, p id.Person) error {
	if err := s.exists(ctx, tx, p); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, sqlEnable, string(p))
	return err
}

// SetPassword changes a password and ends every session and every personal
// token of the person: whoever had the old one keeps nothing. hash is from
// HashNew. Machines' tokens stay. Problem: not_found.
func (s *Store) SetPassword(ctx context.Context, tx *store.Tx, p id.Person, hash string) error {
	if err := s.exists(ctx, tx, p); err != nil {
		return err
	}
	if err := tx.ExecOne(ctx, `UPDATE person SET password = $2 WHERE id = $1`, string(p), hash); err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	if _, err := tx.Exec(ctx, sqlEndPersonal, string(p), store.Micros(tx.Now())); err != nil {
		return fmt.Errorf("end personal tokens: %w", err)
	}
	_, err := tx.Exec(ctx, sqlEndSessions, string(p))
	return err
}

// HashNew checks and hashes a new password, outside any transaction.
func HashNew(password, email string) (string, error) {
	if err := checkPassword(password, email); err != nil {
		return "", err
	}
	return hashPassword(password)
}

const sqlPerson = `SELECT id, email, name, password, CASE WHEN disabled_at IS NULL THEN 1 ELSE 0 END, created_at FROM person WHERE `

func (s *Store) one(ctx context.Context, q store.Querier, tenant, where, value string) (Person, string, error) {
	var p Person
	var hash string
	var created int64
	err := q.QueryRow(ctx, sqlPerson+where, value).Scan(&p.ID, &p.Email, &p.Name, &hash, &p.Active, &created)
	if errors.Is(err, store.ErrNotFound) {
		return p, "", errNobody
	}
	if err != nil {
		return p, "", fmt.Errorf("read person: %w", err)
	}
	p.Created = store.FromMicros(created)
	p.Roles, err = s.roles(ctx, q, tenant, p.ID)
	return p, hash, err
}

func (s *Store) roles(ctx context.Context, q store.Querier, tenant string, p id.Person) ([]string, error) {
	rows, err := q.Query(ctx, sqlRoles, tenant, string(p))
	if err != nil {
		return nil, fmt.Errorf("read roles: %w", err)
	}
	defer rows.Close()
	roles := []string{}
	for rows.Next() {
		var r string
		if err := rows.Scan(&r); err != nil {
			return nil, fmt.Errorf("read roles: %w", err)
		}
		roles = append(roles, r)
	}
	return roles, rows.Err()
}

// Person returns a person with their roles in the tenant. Problem: not_found.
func (s *Store) Person(ctx context.Context, q store.Querier, tenant string, p id.Person) (Person, error) {
	person, _, err := s.one(ctx, q, tenant, "id = $1", string(p))
	return person, err
}

// ByEmail returns the person with the address. Problem: not_found.
func (s *Store) ByEmail(ctx context.Context, q store.Querier, tenant, email string) (Person, error) {
	person, _, err := s.one(ctx, q, tenant, "email = $1", strings.ToLower(strings.TrimSpace(email)))
	return person, err
}

// List returns everybody, by name, at most a thousand.
func (s *Store) List(ctx context.Context, q store.Querier, tenant string) ([]Person, error) {
	return s.many(ctx, q, tenant, `SELECT id FROM person ORDER BY name, id LIMIT 1000`)
}

// WithRole returns who holds the role, by name, disabled people too.
func (s *Store) WithRole(ctx context.Context, q store.Querier, tenant, role string) ([]Person, error) {
	return s.many(ctx, q, tenant, `SELECT p.id FROM role_member m JOIN person p ON p.id = m.person WHERE m.tenant = $1 AND m.role = $2 ORDER BY p.name, p.id`, tenant, role)
}

func (s *Store) many(ctx context.Context, q store.Querier, tenant, query string, args ...any) ([]Person, error) {
	ids, err := ids(ctx, q, query, args...)
	if err != nil {
		return nil, err
	}
	out := make([]Person, 0, len(ids))
	for _, p := range ids {
		person, err := s.Person(ctx, q, tenant, id.Person(p))
		if err != nil {
			return nil, err
		}
		out = append(out, person)
	}
	return out, nil
}

func ids(ctx context.Context, q store.Querier, query string, args ...any) (out []string, err error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list people: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, fmt.Errorf("list people: %w", err)
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// Count returns how many people there are.
func (s *Store) Count(ctx context.Context, q store.Querier) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT count(*) FROM person`).Scan(&n)
	return n, err
}
