//! A flow with the code that openapi-generator makes for Rust: flow ADDRESS TENANT EMAIL PASSWORD

use openapi::apis::auths_api::auths_login;
use openapi::apis::configuration::Configuration;
use openapi::apis::tenant_api::{tenant_get_tenant, tenant_update_tenant};
use openapi::apis::users_api::*;
use openapi::apis::Error;
use openapi::models::login::Transport;
use openapi::models::{CreateUser, Login, Problem, UpdateTenant, UpdateTenantSettings, UpdateUser};

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, tenant, email, password] = &arguments[..] else {
        return Err("usage: flow ADDRESS TENANT EMAIL PASSWORD".into());
    };
    let mut service = Configuration::new();
    service.base_path = address.clone();
    let mut login = Login::new(email.clone(), password.clone());
    login.transport = Some(Transport::Bearer);
    let session = auths_login(&service, tenant, login).await?;
    service.bearer_access_token = session.token;

    users(&service, tenant).await?;
    settings(&service, tenant).await
}

async fn users(service: &Configuration, tenant: &str) -> Result<(), Failure> {
    let new = CreateUser {
        department: Some(Some("Sales".into())),
        ..CreateUser::new("grace@rust.example".into(), "Grace Hopper".into())
    };
    let user = users_create_user(service, tenant, "rust-1", new.clone()).await?;
    let repeated = users_create_user(service, tenant, "rust-1", new).await?;
    assert_eq!(repeated.id, user.id, "the repeated request");
    let id = user.id.to_string();

    let name = UpdateUser {
        name: Some("Grace Murray Hopper".into()),
        ..UpdateUser::new()
    };
    let renamed = users_update_user(service, tenant, &id, name, None).await?;
    assert_eq!(renamed.name.as_deref(), Some("Grace Murray Hopper"));
    assert_eq!(renamed.department, Some(Some("Sales".into())));
    let no_department = UpdateUser {
        department: Some(None),
        ..UpdateUser::new()
    };
    let cleared = users_update_user(service, tenant, &id, no_department, None).await?;
    assert_eq!(cleared.department, Some(None));
    assert_eq!(cleared.name.as_deref(), Some("Grace Murray Hopper"));

    let mut ids = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = users_list_users(
            service,
            tenant,
            Some(1),
            cursor.as_deref(),
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
        )
        .await?;
        ids.extend(page.items.iter().map(|item| item.id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert!(ids.len() == 2 && ids.contains(&user.id), "listed {ids:?}");

    users_delete_user(service, tenant, &id, None).await?;
    match users_get_user(service, tenant, &id, None).await {
        // The enum of the errors has no tag, so its first variant takes the problems of all statuses.
        Err(Error::ResponseError(response)) => {
            assert_eq!(response.status.as_u16(), 404);
            let problem: Problem = serde_json::from_str(&response.content)?;
            assert_eq!(problem.code, "not-found");
        }
        other => panic!("the deleted user is {other:?}"),
    }
    Ok(())
}

async fn settings(service: &Configuration, tenant: &str) -> Result<(), Failure> {
    let before = tenant_get_tenant(service, tenant, None).await?.settings;
    let mut expected = before.ok_or("the settings are absent")?;
    expected.brand_color = Some("#336699".into());
    let color = UpdateTenantSettings {
        brand_color: Some(Some("#336699".into())),
        ..UpdateTenantSettings::new()
    };
    let patch = UpdateTenant {
        settings: Some(Box::new(color)),
        ..UpdateTenant::new()
    };
    let after = tenant_update_tenant(service, tenant, patch, None).await?;
    assert_eq!(after.settings, Some(expected));
    Ok(())
}
