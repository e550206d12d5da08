package scim

// The schemas of the discovery documents.
const (
	configSchema       = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
	resourceTypeSchema = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
	schemaSchema       = "urn:ietf:params:scim:schemas:core:2.0:Schema"
)

// The numbers of resources in a response to a list request.
const (
	DefaultResults = 100 // without count
	MaxResults     = 200 // at most
)

// attribute describes an attribute of a schema (RFC 7643, section 7).
type attribute struct {
	Name            string      `json:"name"`
	Type            string      `json:"type"`
	SubAttributes   []attribute `json:"subAttributes,omitempty"`
	MultiValued     bool        `json:"multiValued"`
	Description     string      `json:"description"`
	Required        bool        `json:"required"`
	CanonicalValues []string    `json:"canonicalValues,omitempty"`
	CaseExact       bool        `json:"caseExact"`
	Mutability      string      `json:"mutability"`
	Returned        string      `json:"returned"`
	Uniqueness      string      `json:"uniqueness"`
	ReferenceTypes  []string    `json:"referenceTypes,omitempty"`
}

func newAttribute(name, kind, description string, subAttributes ...attribute) attribute {
	return attribute{
		Name: name, Type: kind, Description: description, SubAttributes: subAttributes,
		CaseExact: kind == "reference", Mutability: "readWrite", Returned: "default", Uniqueness: "none",
	}
}

func stringAttribute(name, description string) attribute {
	return newAttribute(name, "string", description)
}

func booleanAttribute(name, description string) attribute {
	return newAttribute(name, "boolean", description)
}

func complexAttribute(name, description string, subAttributes ...attribute) attribute {
	return newAttribute(name, "complex", description, subAttributes...)
}

func referenceAttribute(name, description string, types ...string) attribute {
	a := newAttribute(name, "reference", description)
	a.ReferenceTypes = types
	return a
}

// required, list, exact and the other methods return a copy with another property.
func (a attribute) required() attribute { a.Required = true; return a }
func (a attribute) list() attribute     { a.MultiValued = true; return a }
func (a attribute) exact() attribute    { a.CaseExact = true; return a }
func (a attribute) unique() attribute   { a.Uniqueness = "server"; return a }
func (a attribute) values(values ...string) attribute {
	a.CanonicalValues = values
	return a
}

// mutability returns a copy in which the attribute and its sub-attributes have the mutability.
func (a attribute) mutability(mutability string) attribute {
	a.Mutability = mutability
	subAttributes := make([]attribute, len(a.SubAttributes))
	for i, sub := range a.SubAttributes {
		subAttributes[i] = sub.mutability(mutability)
	}
	if a.SubAttributes != nil {
		a.SubAttributes = subAttributes
	}
	return a
}

// published returns the texts as attributes of a schema. externalId is left out, because RFC 7643, section 3.1,
// defines it for all resources.
func published[O any](texts []textAttribute[O]) []attribute {
	var all []attribute
	for _, t := range texts {
		if t.name != "externalId" {
			all = append(all, stringAttribute(t.name, t.description))
		}
	}
	return all
}

func userAttributes() []attribute {
	texts := published(userTexts)
	texts[0] = texts[0].required().unique()
	emails := published(emailTexts)
	emails[0] = emails[0].required()
	emails[2] = emails[2].values("work", "home", "other")
	emails = append(emails, booleanAttribute("primary", "Whether this is the preferred address. At most one address is."))
	return append(
		texts,
		complexAttribute("name", "Parts of the name of the user.", published(nameTexts)...),
		booleanAttribute("active", "Whether the directory has activated the user. An administrator can suspend the user independently.").required(),
		complexAttribute("emails", "Email addresses of the user. One is needed if userName is not an email address.", emails...).list().required(),
		complexAttribute(
			"groups", "Groups of the user.",
			stringAttribute("value", "ID of the group.").exact(),
			referenceAttribute("$ref", "URL of the group.", "Group"),
			stringAttribute("display", "Name of the group."),
		).list().mutability("readOnly"),
	)
}

func groupAttributes() []attribute {
	texts := published(groupTexts)
	texts[0] = texts[0].required().unique()
	return append(
		texts,
		complexAttribute(
			"members", "Users in the group. A response with more than 1,000 has none.",
			stringAttribute("value", "ID of the user.").exact().mutability("immutable"),
			referenceAttribute("$ref", "URL of the user.", "User").mutability("immutable"),
			stringAttribute("type", "Type of the member.").values("User").mutability("immutable"),
		).list(),
	)
}

func configAttributes() []attribute {
	supported := booleanAttribute("supported", "Whether the feature is supported.").required()
	number := func(name, description string) attribute { return newAttribute(name, "integer", description) }
	return []attribute{
		referenceAttribute("documentationUri", "URL of the documentation.", "external").mutability("readOnly"),
		complexAttribute("patch", "PATCH.", supported).required().mutability("readOnly"),
		complexAttribute(
			"bulk", "Bulk requests.", supported,
			number("maxOperations", "Maximum number of operations.").required(),
			number("maxPayloadSize", "Maximum size of a body in bytes.").required(),
		).required().mutability("readOnly"),
		complexAttribute(
			"filter", "Filters.", supported,
			number("maxResults", "Maximum number of resources in a response.").required(),
		).required().mutability("readOnly"),
		complexAttribute("changePassword", "Changes of passwords.", supported).required().mutability("readOnly"),
		complexAttribute("sort", "Sorting.", supported).required().mutability("readOnly"),
		complexAttribute("etag", "ETags.", supported).required().mutability("readOnly"),
		complexAttribute(
			"pagination", "Pagination (RFC 9865).",
			booleanAttribute("cursor", "Whether cursors are supported.").required(),
			booleanAttribute("index", "Whether startIndex is supported.").required(),
			stringAttribute("defaultPaginationMethod", "Method without a parameter.").values("cursor", "index"),
			number("defaultPageSize", "Number of resources in a response without count."),
			number("maxPageSize", "Maximum number of resources in a response."),
		).mutability("readOnly"),
		complexAttribute(
			"authenticationSchemes", "How clients authenticate.",
			stringAttribute("type", "Type of the scheme.").required().values("oauth", "oauth2", "oauthbearertoken", "httpbasic", "httpdigest"),
			stringAttribute("name", "Name of the scheme.").required(),
			stringAttribute("description", "Description of the scheme.").required(),
			referenceAttribute("specUri", "URL of the specification.", "external"),
			referenceAttribute("documentationUri", "URL of the documentation.", "external"),
			booleanAttribute("primary", "Whether this is the preferred scheme."),
		).list().required().mutability("readOnly"),
	}
}

func resourceTypeAttributes() []attribute {
	return []attribute{
		stringAttribute("name", "Name of the resource type.").required().exact().mutability("readOnly"),
		stringAttribute("description", "Description of the resource type.").mutability("readOnly"),
		referenceAttribute("endpoint", "Path of the resources below the base URL.", "uri").required().mutability("readOnly"),
		referenceAttribute("schema", "URN of the schema.", "uri").required().mutability("readOnly"),
		complexAttribute(
			"schemaExtensions", "Extensions of the schema.",
			referenceAttribute("schema", "URN of the extension.", "uri").required(),
			booleanAttribute("required", "Whether each resource has the extension.").required(),
		).list().mutability("readOnly"),
	}
}

func schemaAttributes() []attribute {
	properties := []attribute{
		stringAttribute("name", "Name of the attribute.").required().exact(),
		stringAttribute("type", "Type of the values.").required().values("string", "complex", "boolean", "decimal", "integer", "dateTime", "reference", "binary"),
		booleanAttribute("multiValued", "Whether the attribute has several values.").required(),
		stringAttribute("description", "Description of the attribute.").exact(),
		booleanAttribute("required", "Whether the attribute is required."),
		stringAttribute("canonicalValues", "Suggested values.").list().exact(),
		booleanAttribute("caseExact", "Whether texts are compared with regard to case."),
		stringAttribute("mutability", "Whether the attribute can be changed.").exact().values("readOnly", "readWrite", "immutable", "writeOnly"),
		stringAttribute("returned", "When the attribute is returned.").exact().values("always", "never", "default", "request"),
		stringAttribute("uniqueness", "Where the value is unique.").exact().values("none", "server", "global"),
		stringAttribute("referenceTypes", "Types of resources that the attribute can refer to.").list().exact(),
	}
	subAttributes := complexAttribute("subAttributes", "Attributes of a complex attribute.", properties...).list()
	return []attribute{
		stringAttribute("name", "Name of the schema.").required().mutability("readOnly"),
		stringAttribute("description", "Description of the schema.").mutability("readOnly"),
		complexAttribute("attributes", "Attributes of the schema.", append(properties, subAttributes)...).list().required().mutability("readOnly"),
	}
}

var schemas = []struct {
	id, name, description string
	attributes            []attribute
}{
	{UserSchema, "User", "User account.", userAttributes()},
	{GroupSchema, "Group", "Group of users.", groupAttributes()},
	{EnterpriseUserSchema, "EnterpriseUser", "Attributes of users in organizations.", published(enterpriseTexts)},
	{configSchema, "ServiceProviderConfig", "Features of this service.", configAttributes()},
	{resourceTypeSchema, "ResourceType", "Type of resources.", resourceTypeAttributes()},
	{schemaSchema, "Schema", "Attributes of resources.", schemaAttributes()},
}

// Schemas returns the resources of /Schemas. base is the base URL of the directory, without a slash at its end. The
// caller must not change the attributes in them.
func Schemas(base string) []map[string]any {
	all := make([]map[string]any, len(schemas))
	for i, s := range schemas {
		all[i] = map[string]any{
			"schemas":     []string{schemaSchema},
			"id":          s.id,
			"name":        s.name,
			"description": s.description,
			"attributes":  s.attributes,
			"meta":        discoveryMeta("Schema", base+"/Schemas/"+s.id),
		}
	}
	return all
}

// ResourceTypes returns the resources of /ResourceTypes. base is the base URL of the directory, without a slash at
// its end.
func ResourceTypes(base string) []map[string]any {
	resourceType := func(name, schema string, extensions ...map[string]any) map[string]any {
		resource := map[string]any{
			"schemas":     []string{resourceTypeSchema},
			"id":          name,
			"name":        name,
			"description": name + "s of this directory.",
			"endpoint":    "/" + name + "s",
			"schema":      schema,
			"meta":        discoveryMeta("ResourceType", base+"/ResourceTypes/"+name),
		}
		if len(extensions) > 0 {
			resource["schemaExtensions"] = extensions
		}
		return resource
	}
	return []map[string]any{
		resourceType("User", UserSchema, map[string]any{"schema": EnterpriseUserSchema, "required": false}),
		resourceType("Group", GroupSchema),
	}
}

// ServiceProviderConfig returns the resource of /ServiceProviderConfig. base is the base URL of the directory,
// without a slash at its end.
func ServiceProviderConfig(base string) map[string]any {
	supported := func(is bool) map[string]any { return map[string]any{"supported": is} }
	return map[string]any{
		"schemas":        []string{configSchema},
		"patch":          supported(true),
		"bulk":           map[string]any{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"filter":         map[string]any{"supported": true, "maxResults": MaxResults},
		"changePassword": supported(false),
		"sort":           supported(false),
		"etag":           supported(true),
		"pagination": map[string]any{
			"cursor": true, "index": true, "defaultPaginationMethod": "index",
			"defaultPageSize": DefaultResults, "maxPageSize": MaxResults,
		},
		"authenticationSchemes": []map[string]any{{
			"type": "oauthbearertoken", "name": "Bearer token", "primary": true,
			"description": "A token of the directory in the header Authorization.",
			"specUri":     "https://www.rfc-editor.org/info/rfc6750",
		}},
		"meta": discoveryMeta("ServiceProviderConfig", base+"/ServiceProviderConfig"),
	}
}

func discoveryMeta(resourceType, location string) map[string]any {
	return map[string]any{"resourceType": resourceType, "location": location}
}
