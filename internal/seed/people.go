package seed

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/rolecall/rolecall"
)

// begin is the creation time of the roles. The first user is created one second later,
// and each further user another second later.
const begin rolecall.Time = 1_735_689_600_000_000

var firstNames = []string{
	"Grace", "Alan", "Katherine", "Edsger", "Barbara", "Donald", "Radia", "Tony",
	"Frances", "Dennis", "Margaret", "Niklaus", "Sofia", "José", "Zoë", "Søren",
}

// lastSyllables are the syllables of last names. A last name has three of them, so there
// are 8,000 last names.
var lastSyllables = []string{
	"ba", "ber", "cor", "da", "el", "fen", "gra", "hol", "in", "ka",
	"lo", "mar", "nis", "or", "pe", "ros", "sten", "ta", "vin", "zel",
}

// people generates the users of one tenant. Each user depends only on the options, the
// name of the tenant and the number of the user. So the same seed always gives the same
// users.
type people struct {
	*Options
	key   uint64
	owner rolecall.UserID
	roles []rolecall.Role
}

func newPeople(o *Options, tenant string, owner rolecall.UserID) *people {
	hash := fnv.New64a()
	fmt.Fprint(hash, o.Seed, " ", tenant)
	p := &people{Options: o, key: hash.Sum64(), owner: owner}
	random := rand.New(rand.NewPCG(p.key, 0))
	for i := range o.Roles {
		p.roles = append(p.roles, newRole(random, i))
	}
	return p
}

func newRole(random *rand.Rand, i int) rolecall.Role {
	key := fmt.Sprintf("role-%d", i+1)
	return rolecall.Role{
		ID: newID[rolecall.Role](random, begin), Key: &key,
		Name: fmt.Sprintf("Role %06d", i+1), Description: "Sample role for load tests.",
		Permissions: rolecall.NormalPermissions([]rolecall.Permission{
			rolecall.UsersRead, {Application: "shop", Resource: fmt.Sprintf("shelf-%d", i+1), Action: "stock"},
		}),
		Grants: []rolecall.Permission{}, CreatedAt: begin, UpdatedAt: begin, Version: 1,
	}
}

// person returns the user with the number i and the user's assignments. The numbers begin
// with 0.
func (p *people) person(i int) (rolecall.User, []rolecall.Assignment) {
	random := rand.New(rand.NewPCG(p.key, uint64(i)+1))
	at := begin.Add(time.Duration(i+1) * time.Second)
	first, last := firstNames[random.IntN(len(firstNames))], newLastName(random)
	externalID := fmt.Sprintf("E%08d", i+1)
	department := fmt.Sprintf("Department %d", i%p.Departments+1)
	user := rolecall.User{
		ID: newID[rolecall.User](random, at), Name: first + " " + last,
		Email:      fmt.Sprintf("%s.%s%d@seed.example", rolecall.Fold(first), rolecall.Fold(last), i+1),
		Department: &department, ExternalID: &externalID,
		Metadata: rolecall.NewMetadata(map[string]string{"floor": fmt.Sprint(1 + random.IntN(9))}),
		Status:   rolecall.UserActive, CreatedAt: at, UpdatedAt: at, Version: 1,
	}
	switch {
	case i < p.Passwords:
	case random.IntN(10) == 0:
		user.Status = rolecall.UserPending
	case random.IntN(50) == 0:
		user.Status = rolecall.UserSuspended
	}
	return user, p.held(random, i, &user)
}

func newLastName(random *rand.Rand) string {
	name := ""
	for range 3 {
		name += lastSyllables[random.IntN(len(lastSyllables))]
	}
	return string(name[0]-'a'+'A') + name[1:]
}

// held returns the assignments of the user with the number i. The first p.Holders users
// have the first role. The first user has p.Assignments roles. Every tenth user has one
// more role, which is limited to the user's department in half of the cases.
func (p *people) held(random *rand.Rand, i int, user *rolecall.User) []rolecall.Assignment {
	var held []rolecall.Assignment
	hold := func(role int, reach rolecall.Reach) {
		held = append(held, rolecall.Assignment{
			Holder: rolecall.HolderOf(user.ID), Role: p.roles[role], Reach: reach, ExpiresAt: rolecall.Never, GrantedBy: p.owner, GrantedAt: user.CreatedAt,
		})
	}
	if i < p.Holders && p.Roles > 0 {
		hold(0, rolecall.Everywhere())
	}
	switch {
	case i == 0:
		for role := len(held); role < p.Assignments; role++ {
			hold(role, rolecall.Everywhere())
		}
	case i%10 == 5 && p.Roles > 1:
		reach := rolecall.Everywhere()
		if random.IntN(2) == 0 {
			reach = rolecall.Within(*user.Department)
		}
		hold(1+random.IntN(p.Roles-1), reach)
	}
	return held
}

// newID returns a UUID of version 7 with the timestamp at. All other bits are random. Two
// ids of a tenant differ, because their timestamps or their random bits differ.
func newID[T any](random *rand.Rand, at rolecall.Time) (id rolecall.ID[T]) {
	binary.BigEndian.PutUint64(id[:8], uint64(at/1000)<<16|random.Uint64N(1<<12))
	binary.BigEndian.PutUint64(id[8:], random.Uint64())
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}
