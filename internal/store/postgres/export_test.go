package postgres

// Settings are the settings of every transaction; the argument is the tenant.
const Settings = settings

// RegisterIDs makes a plain connection read and write ids as those of the pool do.
var RegisterIDs = registerIDs
