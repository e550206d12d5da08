import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.AuthsApi;
import org.openapitools.client.api.TenantApi;
import org.openapitools.client.api.UsersApi;
import org.openapitools.client.model.CreateUser;
import org.openapitools.client.model.Login;
import org.openapitools.client.model.Problem;
import org.openapitools.client.model.Tenant;
import org.openapitools.client.model.UpdateTenant;
import org.openapitools.client.model.UpdateTenantSettings;
import org.openapitools.client.model.UpdateUser;
import org.openapitools.client.model.User;
import org.openapitools.client.model.UserPage;
import org.openapitools.jackson.nullable.JsonNullable;

/** A flow with the code that openapi-generator makes: Flow ADDRESS TENANT EMAIL PASSWORD. */
public class Flow {
  private final ApiClient client = new ApiClient();
  private final String tenant;

  private Flow(String address, String tenant) {
    client.updateBaseUri(address);
    this.tenant = tenant;
  }

  public static void main(String[] arguments) throws Exception {
    Flow flow = new Flow(arguments[0], arguments[1]);
    flow.signIn(arguments[2], arguments[3]);
    flow.users();
    flow.settings();
  }

  private void signIn(String email, String password) throws ApiException {
    Login login = new Login().email(email).password(password).transport(Login.TransportEnum.BEARER);
    String token = new AuthsApi(client).authsLogin(tenant, login).getToken();
    client.setRequestInterceptor(request -> request.header("authorization", "Bearer " + token));
  }

  private void users() throws Exception {
    UsersApi api = new UsersApi(client);
    CreateUser grace =
        new CreateUser().email("grace@java.example").name("Grace Hopper").department("Sales");
    UUID id = api.usersCreateUser(tenant, "java-1", grace).getId();
    same(id, api.usersCreateUser(tenant, "java-1", grace).getId());

    UpdateUser name = new UpdateUser().name("Grace Murray Hopper");
    User renamed = api.usersUpdateUser(tenant, id, name, null);
    same("Grace Murray Hopper", renamed.getName());
    same("Sales", renamed.getDepartment());
    User cleared = api.usersUpdateUser(tenant, id, new UpdateUser().department(null), null);
    same("Grace Murray Hopper", cleared.getName());
    same(JsonNullable.of(null), cleared.getDepartment_JsonNullable());

    List<UUID> ids = new ArrayList<>();
    String cursor = null;
    do {
      UserPage page =
          api.usersListUsers(
              tenant, 1, cursor, null, null, null, null, null, null, null, null, null, null);
      page.getItems().forEach(user -> ids.add(user.getId()));
      cursor = page.getNextCursor();
    } while (cursor != null);
    same(2, ids.size());
    same(true, ids.contains(id));

    api.usersDeleteUser(tenant, id, null);
    try {
      api.usersGetUser(tenant, id, null);
      throw new AssertionError("the deleted user is there");
    } catch (ApiException failure) {
      same(404, failure.getCode());
      Problem problem =
          client.getObjectMapper().readValue(failure.getResponseBody(), Problem.class);
      same("not-found", problem.getCode());
    }
  }

  private void settings() throws ApiException {
    TenantApi api = new TenantApi(client);
    Tenant expected = api.tenantGetTenant(tenant, null);
    expected.getSettings().setBrandColor("#336699");
    UpdateTenantSettings color = new UpdateTenantSettings().brandColor("#336699");
    Tenant changed = api.tenantUpdateTenant(tenant, new UpdateTenant().settings(color), null);
    same(expected.getSettings(), changed.getSettings());
  }

  private static void same(Object expected, Object found) {
    if (!Objects.equals(expected, found)) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }
}
