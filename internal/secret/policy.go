package secret

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/rolecall/rolecall"
)

// PasswordMax is how long a password can be, in code points after NFC.
const PasswordMax = 1024

// CheckPassword returns a fault's code and sentence if the password is too easy
// to guess to be taken: shorter than the minimum of code points after NFC, common,
// or equal to one of the forbidden texts, which are what others know of the user.
// Both are empty if it is good.
func CheckPassword(password string, minimum int, forbidden ...string) (code, detail string) {
	if !utf8.ValidString(password) {
		return "encoding", "must be valid UTF-8"
	}
	if n := utf8.RuneCountInString(norm.NFC.String(password)); n < minimum || n > PasswordMax {
		return "length", fmt.Sprintf("must have %d to %d characters", minimum, PasswordMax)
	}
	folded := rolecall.Fold(password)
	if slices.ContainsFunc(forbidden, func(text string) bool { return rolecall.Fold(text) == folded }) {
		return "personal", "must not be the name or the address of the user, nor the name of the tenant"
	}
	if surprises([]rune(folded)) < leastSurprises {
		return "common", "must not be made of common passwords, repetitions and neighbouring keys alone"
	}
	return "", ""
}

// RandomPassword returns a new password of 128 random bits: 26 characters, A to Z
// and 2 to 7, in groups that can be read aloud.
func RandomPassword() string {
	var groups []string
	for group := range slices.Chunk([]byte(rand.Text()), 7) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, "-")
}

const (
	leastSurprises = 8  // code points that nothing foretells
	leastPiece     = 4  // code points from which on a piece counts as foretold
	longestCommon  = 40 // code points of the longest common password
)

// surprises returns how many code points are left when the password is cut, in
// the best way, into pieces that are common, that occurred in it before, or that
// lie side by side on a keyboard.
func surprises(password []rune) int {
	least := make([]int, len(password)+1) // by how far the password was cut
	for i := range least {
		least[i] = i
	}
	for start := range password {
		least[start+1] = min(least[start+1], least[start]+1)
		foretold := true
		for end := start + leastPiece; end <= len(password); end++ {
			piece := string(password[start:end])
			foretold = foretold && (strings.Contains(walks, piece) || strings.Contains(string(password[:end-1]), piece))
			if !foretold && end-start > longestCommon {
				break
			}
			if foretold || commonPasswords()[piece] {
				least[end] = min(least[end], least[start])
			}
		}
	}
	return least[len(password)]
}

// walks holds what fingers do on a keyboard, in both directions.
var walks = func() string {
	rows := []string{
		"012345678901234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm", "qwertzuiopasdfghjklyxcvbnm",
		"azertyuiopqsdfghjklmwxcvbn", "1q2w3e4r5t6y7u8i9o0p", "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p", "1qazxsw23edcvfr45tgbnhy67ujmki89olp0",
		"qazwsxedcrfvtgbyhnujmikolp", "йцукенгшщзхъфывапролджэячсмитьбю",
	}
	for _, row := range rows {
		reversed := []rune(row)
		slices.Reverse(reversed)
		rows = append(rows, string(reversed))
	}
	return strings.Join(rows, "\n")
}()

//go:embed common.txt
var commonText string

// commonPasswords returns the passwords that are tried first, folded.
var commonPasswords = sync.OnceValue(func() map[string]bool {
	common := map[string]bool{}
	for line := range strings.Lines(commonText) {
		if !strings.HasPrefix(line, "#") {
			common[strings.TrimSuffix(line, "\n")] = true
		}
	}
	return common
})
