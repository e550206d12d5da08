package directory_test

import (
	"os"
	"testing"

	"github.com/rolecall/rolecall/internal/sqlitetest"
)

func TestMain(m *testing.M) { os.Exit(sqlitetest.Main(m)) }
